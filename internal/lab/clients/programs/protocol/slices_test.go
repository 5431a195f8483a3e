package protocol

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSlices(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	s := NewSlices(start, 100*time.Millisecond)
	w, other := s.Worker(), s.Worker()
	w.Due(at(10))
	w.Succeeded(at(12)) // 2 ms
	w.Due(at(50))       // fails
	w.Due(at(90))       // fails, too
	w.Due(at(130))
	w.Succeeded(at(150)) // 100, 60 and 20 ms
	other.Due(at(-5))    // before the start
	other.Succeeded(at(5))
	other.Due(at(140)) // has no result at the end
	got := s.Sums(at(200))
	want := []Slice{
		{3, 2, int64(162 * time.Millisecond), int64(100 * time.Millisecond)},
		{2, 1, int64(80 * time.Millisecond), int64(60 * time.Millisecond)},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	var none *Slices = NewSlices(start, 0)
	nobody := none.Worker()
	nobody.Due(at(1))
	nobody.Succeeded(at(2))
	if none.Sums(at(3)) != nil {
		t.Error("slices without a length")
	}
}

// TestSlicesAddUp: each operation that was due counts once, and lasts until the next success of its worker.
func TestSlicesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1000, 0)
		s := NewSlices(start, time.Duration(rapid.IntRange(1, 50).Draw(t, "every"))*time.Millisecond)
		w, now := s.Worker(), start
		var waiting []time.Time
		var operations, ns int64
		end := func() {
			for _, due := range waiting {
				ns += int64(now.Sub(due))
			}
			waiting = nil
		}
		for range rapid.IntRange(0, 50).Draw(t, "operations") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "gap")) * time.Millisecond)
			w.Due(now)
			waiting = append(waiting, now)
			operations++
			if rapid.Bool().Draw(t, "succeeds") {
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "took")) * time.Millisecond)
				w.Succeeded(now)
				end()
			}
		}
		end()
		var sum Slice
		for _, one := range s.Sums(now) {
			sum.Operations += one.Operations
			sum.Ns += one.Ns
		}
		if sum.Operations != operations || sum.Ns != ns {
			t.Errorf("%v, want %d operations of %d ns", sum, operations, ns)
		}
	})
}
