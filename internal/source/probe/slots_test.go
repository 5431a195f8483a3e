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
