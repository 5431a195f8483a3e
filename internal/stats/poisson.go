package stats

import "math"

// PoissonTail is the probability of count or more events where mean are expected, and each comes independently of the
// others.
func PoissonTail(count int, mean float64) float64 {
	if mean > largeMean {
		return math.Erfc((float64(count)-0.5-mean)/math.Sqrt(2*mean)) / 2
	}
	term := math.Exp(-mean)
	below := 0.0
	for k := range count {
		below += term
		term *= mean / float64(k+1)
	}
	return max(1-below, 0)
}

// largeMean is from when on the normal distribution is near enough, with a continuity correction.
const largeMean = 500
