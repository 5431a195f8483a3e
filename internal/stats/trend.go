package stats

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// trendAlpha is the probability of a trend by chance below which repeats are said to have one.
const trendAlpha = 0.01

// Drifts tells whether values that should be alike rise or fall in the order of time (the test of Mann and Kendall).
// Then the machine changed while it was measured, and the repeats show that change, too.
func Drifts(values []float64) bool {
	n := float64(len(values))
	if n < RepeatsForInterval {
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
	return 2*(1-stats.StdNormal.CDF((math.Abs(s)-1)/sd)) < trendAlpha
}
