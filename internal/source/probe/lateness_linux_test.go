package probe

import (
	"testing"
	"time"

	"slowpath/internal/clock"
)

// TestLateness: a thread wakes up on its CPU, and says for how long it did not.
func TestLateness(t *testing.T) {
	clk := clock.New()
	cpu := 0
	l, err := WatchLateness(t.Context(), clk, cpu)
	if err != nil {
		t.Skip("may not run there: ", err)
	}
	begin := clk.Now()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		next := l.next
		l.mu.Unlock()
		if next > begin+int64(20*wakeEvery) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not wake up")
		}
	}
	end := clk.Now()
	if late := l.Within(begin, end); late < 0 || int64(late) > end-begin {
		t.Errorf("late by %v of %v", late, time.Duration(end-begin))
	}
	if _, err := WatchLateness(t.Context(), clk, 1000); err == nil {
		t.Error("there is no CPU 1000")
	}
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
