package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Estimate is the median of repeats, in their unit. Low and High are its 95 % interval by order statistics, infinite
// below RepeatsForInterval repeats.
type Estimate struct {
	Value, Low, High float64
	Repeats          int
}

// Confidence of the interval of a median.
const Confidence = 0.95

// RepeatsForInterval is the number of repeats from which a median has an interval: all of fewer lie on one side of it
// with a probability above 5 % (2·½ⁿ).
const RepeatsForInterval = 6

// EstimateMedian gives the median and its interval; of no repeats it is NaN.
func EstimateMedian(repeats []float64) Estimate {
	if len(repeats) == 0 {
		return Estimate{math.NaN(), math.Inf(-1), math.Inf(1), 0}
	}
	s := benchmath.AssumeNothing.Summary(sampleOf(repeats), Confidence)
	m := Estimate{s.Center, s.Lo, s.Hi, len(repeats)}
	if len(repeats) < RepeatsForInterval { // with five it would be open at one end only
		m.Low, m.High = math.Inf(-1), math.Inf(1)
	}
	return m
}

// sampleOf leaves the values in the order of time; NewSample would sort them.
func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}
