package stats

import "math"

// PoissonTail is the probability of count or more events where mean are expected, and each comes independently of the
// others.
func PoissonTail(count int, mean float64) float64 {
	term := math.Exp(-mean)
	below := 0.0
	for k := range count {
		below += term
		term *= mean / float64(k+1)
	}
	return max(1-below, 0)
}
