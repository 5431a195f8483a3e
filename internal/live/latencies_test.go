package live

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLatencies: every number that is read from them is that of the calls themselves, but for the width of a step.
func TestLatencies(t *testing.T) {
	near := func(got, want int64) bool { return got >= want-want/30-1 && got <= want+want/30+1 }
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, 3_600_000_000_000), 1, 200).Draw(t, "times")
		var a, b Latencies
		for i, ns := range all {
			if i%2 == 0 {
				a.Add(ns, 1)
			} else {
				b.Add(ns, 1)
			}
		}
		a.Merge(b)
		slices.Sort(all)
		if a.Calls() != int64(len(all)) || a.MaxNs() != all[len(all)-1] || !near(a.MinNs(), all[0]) {
			t.Fatalf("calls %d, max %d, min %d of %v", a.Calls(), a.MaxNs(), a.MinNs(), all)
		}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want := all[max(int(q*float64(len(all))+0.5), 1)-1]
			if got := a.Quantile(q); !near(got, want) {
				t.Fatalf("quantile %v is %d, want %d of %v", q, got, want, all)
			}
		}
		counted := int64(0)
		a.Each(func(from, to, n int64) {
			counted += n
			if from >= to {
				t.Fatalf("a step from %d to %d", from, to)
			}
		})
		if counted != a.Calls() || a.HDR().TotalCount() != a.Calls() || a.From(0) != a.Calls() {
			t.Fatalf("%d in steps, %d in the histogram", counted, a.HDR().TotalCount())
		}
	})
}

func TestStepsHaveNoGap(t *testing.T) {
	for at := uint16(0); at < 1800; at++ {
		if from := stepFrom(at); stepOf(from) != at || stepOf(stepFrom(at+1)-1) != at {
			t.Fatalf("step %d is from %d to %d", at, from, stepFrom(at+1))
		}
	}
}

// TestLatenciesRemoved: calls that are taken away again are gone, those of a time that was not counted too.
func TestLatenciesRemoved(t *testing.T) {
	var l Latencies
	for _, ns := range []int64{100, 200, 300, 400} {
		l.Add(ns*1000, 1)
	}
	l.Remove(200_000, 1)
	l.Remove(250_000, 1) // 300 µs
	l.Remove(900_000, 1) // the longest
	if l.Calls() != 1 || l.From(150_000) != 0 {
		t.Errorf("%d calls are left, %d above 150 µs", l.Calls(), l.From(150_000))
	}
	l.Remove(1, 5)
	if l.Calls() != 0 {
		t.Errorf("%d calls are left of none", l.Calls())
	}
}
