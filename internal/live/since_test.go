package live_test

import (
	"testing"
	"time"

	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// TestSlowSince: a reader that comes back gets each slow call once, and is told how many it missed.
func TestSlowSince(t *testing.T) {
	now := int64(1_800_000_000)
	v := live.New(live.Options{Clock: at(now * 1e9), Slow: time.Millisecond})
	add := func(n int) {
		for range n {
			v.Call(recording.Call{
				Source: recording.SourceTap, Node: "a:1", Conn: "10.0.0.9:1234", IntendedNs: now*1e9 - 5e6,
				EndNs: now * 1e9,
			})
		}
	}
	last := uint64(0)
	for _, n := range []int{0, 3, 0, 1999, 2000, 2500, 1} {
		add(n)
		calls, missed := v.SlowSince(last)
		if len(calls)+int(missed) != n || missed != uint64(max(n-2000, 0)) {
			t.Fatalf("of %d new calls %d were given, and %d missed", n, len(calls), missed)
		}
		for i, c := range calls {
			if c.Number != last+missed+uint64(i)+1 {
				t.Fatalf("call %d has the number %d after %d", i, c.Number, last)
			}
		}
		last += uint64(n)
	}
	if name := v.CallerOf(recording.Call{Conn: "10.0.0.9:1234"}); name != "10.0.0.9" {
		t.Errorf("the caller is %q", name)
	}
}
