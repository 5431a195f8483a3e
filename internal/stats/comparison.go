// Package stats tells whether repeated measurements differ, and by how much, without taking noise for a difference.
//
// Nothing is assumed of how the noise is distributed: medians, the Mann-Whitney U test, and the shift of Hodges and
// Lehmann with the interval that belongs to that test.
package stats

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Figure is one thing that was measured again and again, in the order of time.
type Figure struct {
	Name   string
	Higher bool // is better; else lower is
	Old    []float64
	New    []float64
}

// Verdicts on a figure.
const (
	Faster  = "faster"
	Slower  = "slower"
	Unshown = "no difference shown"
	TooFew  = "too few repeats"
	None    = "not comparable" // a value is 0 or no number: there is no ratio
)

// Verdict is what the measurements tell about a figure.
type Verdict struct {
	Name     string
	Old, New Median
	Verdict  string
	// Change is the new value by the old one, less 1: 0.04 is 4 % more. It lies from Low to High at the confidence of
	// the comparison; both are infinite where the repeats are too few for it.
	Change, Low, High float64
	P                 float64 // of the Mann-Whitney U test: the chance of such samples if nothing had changed
	Needed            int     // repeats on either side with which a difference can show at all
}

// Alpha is how often, at most, a comparison of equal things finds a difference in any of its figures.
const Alpha = 0.05

// Compare compares each figure so that all together are wrong at most as often as Alpha: each is tested at Alpha by
// their number (Bonferroni), and the intervals are as much wider.
func Compare(figures []Figure) []Verdict {
	comparable := 0
	for _, f := range figures {
		if f.hasRatio() {
			comparable++
		}
	}
	alpha := Alpha / float64(max(1, comparable))
	out := make([]Verdict, len(figures))
	for i, f := range figures {
		out[i] = f.compare(alpha)
	}
	return out
}

func (f Figure) compare(alpha float64) Verdict {
	v := Verdict{Name: f.Name, Old: MedianOf(f.Old), New: MedianOf(f.New), Needed: Needed(alpha), Verdict: None, P: 1}
	if !f.hasRatio() {
		return v
	}
	shift, low, high := shiftOf(logs(f.Old), logs(f.New), alpha)
	v.Change, v.Low, v.High = math.Expm1(shift), math.Expm1(low), math.Expm1(high)
	if math.IsInf(low, 0) {
		v.Verdict, v.Low = TooFew, low
		return v
	}
	v.P = benchmath.AssumeNothing.Compare(sampleOf(f.Old), sampleOf(f.New)).P
	switch {
	case v.P > alpha || low <= 0 && high >= 0: // they part only where values are equal
		v.Verdict = Unshown
	case (low > 0) == f.Higher:
		v.Verdict = Faster
	default:
		v.Verdict = Slower
	}
	return v
}

// hasRatio tells whether all values are above 0, so that one can be a multiple of another.
func (f Figure) hasRatio() bool {
	for _, v := range slices.Concat(f.Old, f.New) {
		if !(v > 0) || math.IsInf(v, 1) {
			return false
		}
	}
	return len(f.Old) > 0 && len(f.New) > 0
}

// logs gives the logarithms: their differences are ratios.
func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}

// String is the verdict for people: "faster by 4.0 % ± 1.0 %".
func (v Verdict) String() string {
	switch v.Verdict {
	case Unshown:
		return fmt.Sprintf("%s (%s to %s %%)", Unshown, signed(v.Low), signed(v.High))
	case Faster, Slower:
		if v.High-v.Change >= math.Abs(v.Change) { // a long tail on one side, which ± would show on both
			return fmt.Sprintf("%s by %s %% (%s to %s %%)", v.Verdict, percent(math.Abs(v.Change)), signed(v.Low),
				signed(v.High))
		}
		return fmt.Sprintf("%s by %s %% ± %s %%", v.Verdict, percent(math.Abs(v.Change)),
			percent(max(v.Change-v.Low, v.High-v.Change)))
	}
	return v.Verdict
}

func signed(share float64) string {
	if share < 0 {
		return "-" + percent(-share)
	}
	return "+" + percent(share)
}

// percent has a digit behind the point below ten.
func percent(share float64) string {
	if share < 0.0995 {
		return fmt.Sprintf("%.1f", share*100)
	}
	return fmt.Sprintf("%.0f", share*100)
}
