package stats

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// Proportion gives the interval of a share of which count of n were seen (Wilson, 1927), at Confidence. Of nothing it
// is [0, 1].
func Proportion(count, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	z := stats.InvCDF(stats.StdNormal)((1 + Confidence) / 2)
	of, p := float64(n), float64(count)/float64(n)
	center := (p + z*z/(2*of)) / (1 + z*z/of)
	half := z / (1 + z*z/of) * math.Sqrt(p*(1-p)/of+z*z/(4*of*of))
	return max(0, center-half), min(1, center+half)
}
