// Package stats is what slowpath computes with numbers: medians, quantiles, least squares, and whether repeated
// measurements differ.
//
// Nothing is assumed of how noise is distributed: repeats are compared by medians, the Mann-Whitney U test, and the
// shift of Hodges and Lehmann with the interval that belongs to that test.
package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Metric is one thing that was measured repeatedly, before a change and after it, each in the order of time.
type Metric struct {
	Name           string
	HigherIsBetter bool // else lower is
	Old, New       []float64
}

// Verdicts on a metric.
const (
	Faster       = "faster"
	Slower       = "slower"
	NoDifference = "no-difference-shown"
	TooFew       = "too-few-repeats"
	Incomparable = "not-comparable" // a value is 0 or no number: there is no ratio
)

// Comparison is what the measurements show of a metric.
type Comparison struct {
	Name     string
	Old, New Estimate
	Verdict  string
	// Change is the new value by the old one, less 1: 0.04 is 4 % more. It lies from Low to High at the confidence of
	// the comparison; both are infinite where the repeats are too few for it.
	Change, Low, High float64
	P                 float64 // of the Mann-Whitney U test: the probability of such samples if nothing had changed
	Needed            int     // repeats on either side from which a difference can show at all
}

// Alpha is the share, at most, of comparisons of equal things that show a difference in any metric.
const Alpha = 0.05

// Compare compares each metric so that all together are wrong in at most a share Alpha of comparisons: each is tested
// at Alpha divided by their number (Bonferroni), and the intervals are as much wider.
func Compare(metrics []Metric) []Comparison {
	comparable := 0
	for _, m := range metrics {
		if m.hasRatio() {
			comparable++
		}
	}
	alpha := Alpha / float64(max(1, comparable))
	out := make([]Comparison, len(metrics))
	for i, m := range metrics {
		out[i] = m.compare(alpha)
	}
	return out
}

func (m Metric) compare(alpha float64) Comparison {
	c := Comparison{
		Name: m.Name, Old: EstimateMedian(m.Old), New: EstimateMedian(m.New), Needed: RepeatsToDiffer(alpha),
		Verdict: Incomparable, P: 1,
	}
	if !m.hasRatio() {
		return c
	}
	shift, low, high := shiftOf(logs(m.Old), logs(m.New), alpha)
	c.Change, c.Low, c.High = math.Expm1(shift), math.Expm1(low), math.Expm1(high)
	if math.IsInf(low, 0) {
		c.Verdict, c.Low = TooFew, low
		return c
	}
	c.P = benchmath.AssumeNothing.Compare(sampleOf(m.Old), sampleOf(m.New)).P
	switch {
	case c.P > alpha || low <= 0 && high >= 0: // test and interval disagree only where values are equal
		c.Verdict = NoDifference
	case (low > 0) == m.HigherIsBetter:
		c.Verdict = Faster
	default:
		c.Verdict = Slower
	}
	return c
}

// hasRatio tells whether all values are above 0, so that one can be a multiple of another.
func (m Metric) hasRatio() bool {
	for _, v := range slices.Concat(m.Old, m.New) {
		if !(v > 0) || math.IsInf(v, 1) {
			return false
		}
	}
	return len(m.Old) > 0 && len(m.New) > 0
}

// logs gives the logarithms: their differences are ratios.
func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}
