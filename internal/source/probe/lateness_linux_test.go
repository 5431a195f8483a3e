package probe

import (
	"testing"
	"time"
)

func TestLatenessWithin(t *testing.T) {
	ns := func(ms int64) int64 { return ms * int64(time.Millisecond) }
	of := &Lateness{next: ns(100), waits: [][2]int64{{ns(10), ns(20)}, {ns(30), ns(35)}}}
	for _, k := range []struct{ from, to, want int64 }{
		{0, 5, 0},
		{0, 40, 15},
		{15, 32, 7},
		{20, 30, 0},
		{90, 130, 30}, // it has not woken up since
		{120, 130, 10},
	} {
		if got := of.Within(ns(k.from), ns(k.to)); got != time.Duration(ns(k.want)) {
			t.Errorf("within %d-%d ms: %v", k.from, k.to, got)
		}
	}
}
