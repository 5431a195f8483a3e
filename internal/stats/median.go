package stats

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// Median of repeats, in the unit of the figure. Low and High are its 95 % interval by order statistics, infinite below
// NeededForMedian repeats.
type Median struct {
	Value, Low, High float64
	Repeats          int
}

// Confidence of the interval of a median.
const Confidence = 0.95

// NeededForMedian is the number of repeats from which on the median has an interval: all of fewer lie on one side of it
// with more than 5 % chance (2·½ⁿ).
const NeededForMedian = 6

// MedianOf gives the median; of nothing it is NaN.
func MedianOf(values []float64) Median {
	if len(values) == 0 {
		return Median{math.NaN(), math.Inf(-1), math.Inf(1), 0}
	}
	s := benchmath.AssumeNothing.Summary(sampleOf(values), Confidence)
	m := Median{s.Center, s.Lo, s.Hi, len(values)}
	if len(values) < NeededForMedian { // with five it would be open at one end only
		m.Low, m.High = math.Inf(-1), math.Inf(1)
	}
	return m
}

// sampleOf leaves the values in the order of time; NewSample would sort them.
func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

// steady is the chance below which a trend among repeats is none of chance.
const steady = 0.01

// Drifts tells whether values that should be alike rise or fall in the order of time (the test of Mann and Kendall):
// then the machine changed while it was measured, and what is told of the repeats tells of that, too.
func Drifts(values []float64) bool {
	n := float64(len(values))
	if n < NeededForMedian {
		return false
	}
	s := 0.0
	for i, a := range values {
		for _, b := range values[i+1:] {
			switch {
			case b > a:
				s++
			case b < a:
				s--
			}
		}
	}
	sd := math.Sqrt(n * (n - 1) * (2*n + 5) / 18)
	return 2*(1-stats.StdNormal.CDF((math.Abs(s)-1)/sd)) < steady
}
