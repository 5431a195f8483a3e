package stats

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// exactUpTo is the size of samples up to which the distribution of U is computed exactly; above it the normal
// distribution is as good.
const exactUpTo = 50

// shiftOf is by how much b is above a: the median of all pairs' differences (Hodges and Lehmann, 1963), and the
// interval of the shifts that a Mann-Whitney U test at alpha does not reject. It is infinite where the samples are too
// small for any shift to be rejected.
func shiftOf(a, b []float64, alpha float64) (shift, low, high float64) {
	d := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			d = append(d, y-x)
		}
	}
	slices.Sort(d)
	shift = Median(d)
	outside := quantileU(len(a), len(b), alpha/2)
	if outside < 0 {
		return shift, math.Inf(-1), math.Inf(1)
	}
	return shift, d[outside+1], d[len(d)-2-outside]
}

// quantileU is the largest u with P(U ≤ u) ≤ p, if both samples come from the same distribution; -1: there is none.
func quantileU(n1, n2 int, p float64) int {
	cdf := func(u int) float64 { return stats.UDist{N1: n1, N2: n2}.CDF(float64(u)) }
	if max(n1, n2) > exactUpTo {
		m := float64(n1*n2) / 2
		normal := stats.NormalDist{Mu: m, Sigma: math.Sqrt(m * float64(n1+n2+1) / 6)}
		cdf = func(u int) float64 { return normal.CDF(float64(u) + 0.5) }
	}
	// By bisection: the distribution costs too much to be computed for each u.
	low, high := -1, n1*n2/2
	for low < high {
		mid := low + (high-low+1)/2
		if cdf(mid) <= p {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return min(low, n1*n2/2-1)
}

// RepeatsToDiffer is the number of repeats on either side from which a difference can show at alpha: the two most
// extreme of their (2n)!/(n!)² orders must be rare enough.
func RepeatsToDiffer(alpha float64) int {
	orders := 1.0
	for n := 1; ; n++ {
		orders *= float64(2*n) * float64(2*n-1) / float64(n*n)
		if 2/orders <= alpha {
			return n
		}
	}
}
