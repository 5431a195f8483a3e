package connection

import (
	"math/rand/v2"
	"slices"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// TestStepsAround: the index finds the steps that a look at all of them finds, in the same order.
func TestStepsAround(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s, all := connSteps{}, []*connStep{}
	for range 3000 {
		from := random.Int64N(100e9)
		ns := random.Int64N(3e9)
		if random.IntN(10) == 0 {
			ns = random.Int64N(60e9)
		}
		step := caller.TimelineStep{Span: facts.Span{FromNs: from, ToNs: from + ns}, Calls: random.Int64()}
		all = append(all, &connStep{nil, step})
		s.add(all[len(all)-1])
	}
	found := 0
	for range 500 {
		from := random.Int64N(100e9)
		to := from + random.Int64N(2e9)
		want := slices.DeleteFunc(slices.Clone(all), func(l *connStep) bool { return l.FromNs > from || l.ToNs < to })
		got := slices.Collect(s.around(from, to))
		if !slices.Equal(got, want) {
			t.Fatalf("%d steps around [%d, %d], want %d", len(got), from, to, len(want))
		}
		found += len(got)
	}
	if found == 0 {
		t.Error("no steps found")
	}
}
