package probe

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever the rate, call k is due within slot k of an absolute schedule.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.Int64Range(0, 1<<62).Draw(t, "start"), rapid.Float64Range(0.1, 10_000).Draw(t, "rate"), nil)
		for want := range int64(50) {
			d := s.next()
			from := s.startNs + d.k*s.widthNs
			if d.k != want || d.atNs < from || d.atNs >= from+s.widthNs {
				t.Fatalf("call %d due at %v, its slot begins at %v", d.k, d.atNs, from)
			}
		}
	})
}

// TestLeaveRoom: slots are twice as wide as the round trips of the path, and as wide as was asked for once these are
// short again; a single stall changes nothing.
func TestLeaveRoom(t *testing.T) {
	const ms = int64(1e6)
	s := newSlots(0, 50, nil)
	for i, step := range []struct{ trips, tripMs, widthMs int64 }{
		{9, 1, 20}, {1, 1000, 20}, {9, 30, 60}, {9, 1, 20},
	} {
		for range step.trips {
			s.leaveRoom(7*ms, step.tripMs*ms)
		}
		if s.widthNs != step.widthMs*ms {
			t.Errorf("step %d: slots of %d ms, want %d", i, s.widthNs/ms, step.widthMs)
		}
	}
	if d := s.next(); d.atNs < 7*ms || d.atNs >= 27*ms {
		t.Errorf("the next call is due at %d ms, in the first slot since 7 ms", d.atNs/ms)
	}
}
