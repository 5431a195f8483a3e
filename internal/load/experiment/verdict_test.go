package experiment

import (
	"testing"

	"slowpath/internal/stats"
)

// TestVerdictText: of 6 and 6 a U of 5 is the last that is rare (the published tables), so that the interval ends at
// the seventh of the 36 ordered differences, two steps of the series away.
func TestVerdictText(t *testing.T) {
	old := []float64{100, 101, 102, 103, 104, 105}
	scaled := func(f float64) (out []float64) {
		for _, v := range old {
			out = append(out, v*f)
		}
		return out
	}
	for _, c := range []struct {
		higherIsBetter bool
		old, new       []float64
		want           string
	}{
		{true, old, scaled(2), "faster by 100 % ± 4.0 %"},
		{false, old, scaled(2), "slower by 100 % ± 4.0 %"},
		{false, old, scaled(0.5), "faster by 50 % ± 1.0 %"},
		{
			false,
			[]float64{100, 101, 102, 103, 104},
			[]float64{110, 120, 300, 400, 5000},
			"slower by 194 % (+8.9 to +4754 %)",
		},
		{true, old, old, "no difference shown (-2.0 to +2.0 %)"},
		{true, []float64{7, 7, 7, 7, 7}, []float64{7, 7, 7, 7, 7}, "no difference shown (+0.0 to +0.0 %)"},
		{true, []float64{0, 7, 7, 7, 7}, []float64{7, 7, 7, 7, 7}, "not comparable"},
		{true, nil, old, "not comparable"},
	} {
		m := stats.Metric{HigherIsBetter: c.higherIsBetter, Old: c.old, New: c.new}
		if got := stats.Compare([]stats.Metric{m})[0]; verdictText(got) != c.want {
			t.Errorf("%v: %q, want %q", m, verdictText(got), c.want)
		}
	}
}
