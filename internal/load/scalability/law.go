// Package scalability fits the universal scalability law to throughput that was measured at several levels of
// concurrency, and names the knee.
//
// The law (N. Gunther, "Guerrilla Capacity Planning", 2007): X(N) = λN / (1 + σ(N-1) + κN(N-1)). λ is the throughput at
// concurrency 1, σ the share of the work that is serialised (contention), κ the cost of agreement per pair (coherency).
// With κ = 0 it is Amdahl's law.
package scalability

import "math"

// Law is the universal scalability law with its parameters. Lambda is above 0, in calls per second; Sigma and Kappa are
// not below 0.
type Law struct{ Lambda, Sigma, Kappa float64 }

// At gives the throughput at concurrency n, in calls per second.
func (l Law) At(n float64) float64 {
	return l.Lambda * n / (1 + l.Sigma*(n-1) + l.Kappa*n*(n-1))
}

// Peak is the concurrency with the highest throughput, where the derivative of the law is 0; +Inf if the law has none.
func (l Law) Peak() float64 {
	switch {
	case l.Kappa <= 0:
		return math.Inf(1)
	case l.Sigma >= 1:
		return 1 // it only falls
	}
	return math.Sqrt((1 - l.Sigma) / l.Kappa)
}

// maxConcurrency ends the search for a knee: nobody opens more connections.
const maxConcurrency = 1e9

// Knee is the concurrency from which twice as much gives less than gain more throughput (0.1 is 10 %), at least 1; +Inf
// if the law has none. The gain of doubling only falls as n grows.
func (l Law) Knee(gain float64) float64 {
	little := func(n float64) bool { return l.At(2*n) < (1+gain)*l.At(n) }
	low, high := 1.0, maxConcurrency
	if little(low) {
		return low
	}
	if !little(high) {
		return math.Inf(1)
	}
	for high/low > 1+1e-9 {
		if mid := math.Sqrt(low * high); little(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
