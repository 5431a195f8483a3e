package stats

import (
	"math"
	"slices"
)

// Number is what medians can be taken of.
type Number interface {
	~int | ~int64 | ~float64
}

// Median is the median in any order of the values; of an even number the mean of the middle two, for integers rounded
// towards zero. Of no values it is 0.
func Median[T Number](values []T) T {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// MedianUpper is the median of sorted values; of an even number the upper of the middle two, so that it is always one
// of the values. There must be one at least.
func MedianUpper[T any](sorted []T) T { return sorted[len(sorted)/2] }

// Quantile is the value of sorted ones that the share q does not exceed, by the nearest rank. There must be one value
// at least.
func Quantile[T any](sorted []T, q float64) T {
	rank := int(q*float64(len(sorted)) + 0.5)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

// Central gives the ends of the interval that holds the share in the middle of the values: as many are below as above.
// Of no values it is NaN.
func Central(values []float64, share float64) (low, high float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	tail, last := (1-share)/2, float64(len(sorted)-1)
	return sorted[int(math.Floor(tail*last))], sorted[int(math.Ceil((1-tail)*last))]
}
