package stats

import (
	"math"
	"slices"
)

// Paired is by how much one thing is above another, by pairs of measurements that were made next to each other.
type Paired struct {
	// Shift is the median of the means of any two differences, or of one with itself (Hodges and Lehmann, 1963).
	Shift float64
	// Low and High are the ends of the interval of the shifts that the test does not reject; infinite where the pairs
	// are too few for it.
	Low, High float64
	P         float64 // that the first is not above the second: the one-sided test of Wilcoxon's signed ranks
	Pairs     int
}

// ComparePairs tests differences of pairs, exactly. The interval has Confidence on both sides together, so that it lies
// above 0 where P is at most (1-Confidence)/2. Nothing is assumed of the noise but that a difference of equal things is
// as often above 0 as below.
func ComparePairs(differences []float64) Paired {
	d := slices.DeleteFunc(slices.Clone(differences), math.IsNaN)
	p := Paired{P: 1, Low: math.Inf(-1), High: math.Inf(1), Pairs: len(d)}
	if len(d) == 0 {
		return p
	}
	means := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i, a := range d {
		for _, b := range d[:i+1] {
			means = append(means, (a+b)/2)
		}
	}
	slices.Sort(means)
	p.Shift = Median(means)
	orders := rankSums(len(d))
	// The signed-rank statistic is the number of these means that are above 0.
	above := len(means) - sortedUpTo(means, 0)
	p.P = tail(orders, above)
	// the largest number that so few orders reach that both ends together are rare enough
	for k := range means {
		if tail(orders, len(means)-k) > (1-Confidence)/2 {
			break
		}
		p.Low, p.High = means[k], means[len(means)-1-k]
	}
	return p
}

// sortedUpTo is how many of sorted values are at most v.
func sortedUpTo(sorted []float64, v float64) int {
	i, _ := slices.BinarySearchFunc(sorted, v, func(x, v float64) int {
		if x > v {
			return 1
		}
		return -1
	})
	return i
}

// rankSums gives, for each sum of ranks of n pairs, the share of the 2^n equally likely choices of signs that have it.
func rankSums(n int) []float64 {
	p := make([]float64, n*(n+1)/2+1)
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := len(p) - 1; sum >= 0; sum-- {
			p[sum] /= 2
			if sum >= rank {
				p[sum] += p[sum-rank] / 2
			}
		}
	}
	return p
}

// tail is the probability of a sum of at least at.
func tail(p []float64, at int) float64 {
	sum := 0.0
	for _, q := range p[min(max(at, 0), len(p)):] {
		sum += q
	}
	return min(sum, 1)
}
