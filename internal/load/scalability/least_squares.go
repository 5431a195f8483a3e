package scalability

import (
	"math"
	"slices"

	"slowpath/internal/stats"
)

// The law is fitted as X(N) = N / (a + b(N-1) + cN(N-1)), with a = 1/λ, b = σ/λ, c = κ/λ: N/X is linear in them, which
// gives the start, and the bounds are those of single coefficients: b ≥ 0, c ≥ 0.
type coefficients = stats.Coefficients

func lawOf(p coefficients) Law { return Law{Lambda: 1 / p[0], Sigma: p[1] / p[0], Kappa: p[2] / p[0]} }

func terms(n float64) coefficients { return coefficients{1, n - 1, n * (n - 1)} }

// cycle is N/X, by the coefficients.
func cycle(p coefficients, n float64) float64 {
	t := terms(n)
	return p[0]*t[0] + p[1]*t[1] + p[2]*t[2]
}

// row is an observation with its weight: an error of the throughput is counted in units of scale.
type row struct{ n, x, scale float64 }

func cost(rows []row, p coefficients) (sum float64) {
	for _, r := range rows {
		d := (r.x - r.n/cycle(p, r.n)) / r.scale
		sum += d * d
	}
	return sum
}

// leastSquares gives the coefficients with the smallest sum of weighted squares among those with a > 0, b ≥ 0, c ≥ 0.
// Four cases differ in which of b and c are 0. Each is solved without bounds, and the best solution within them is the
// answer. False: there is none, the throughput falls faster than the law can.
func leastSquares(rows []row) (coefficients, bool) {
	best, least, found := coefficients{}, math.Inf(1), false
	for _, free := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		p, ok := gaussNewton(rows, free)
		if !ok || p[0] <= 0 || slices.Min(p[1:]) < 0 {
			continue
		}
		if c := cost(rows, p); c < least {
			best, least, found = p, c, true
		}
		if len(free) == len(p) {
			break // within the bounds without a 0: the best
		}
	}
	return best, found
}

const (
	maxSteps    = 100
	maxHalvings = 30
	minGain     = 1e-8 // relative gain of the last step
)

// gaussNewton solves for the free coefficients; the others stay 0. Steps that would not gain are halved.
func gaussNewton(rows []row, free []int) (coefficients, bool) {
	// N/X has the relative error of X, so that to count it in units of N·scale/X² is right to first order.
	p, ok := solve(rows, free, func(r row) (coefficients, float64, float64) {
		return terms(r.n), r.n / r.x, r.n * r.scale / (r.x * r.x)
	})
	if !ok || !positive(rows, p) {
		if p = flat(rows); !positive(rows, p) {
			return p, false
		}
	}
	now := cost(rows, p)
	for range maxSteps {
		step, ok := solve(rows, free, func(r row) (coefficients, float64, float64) {
			f := r.n / cycle(p, r.n)
			t := terms(r.n)
			for i := range t {
				t[i] *= -f * f / r.n // the derivative of n/cycle
			}
			return t, r.x - f, r.scale
		})
		if !ok {
			return p, true
		}
		next, c, gained := shorten(rows, p, step, now)
		if !gained {
			return p, true
		}
		small := now-c <= minGain*now
		if p, now = next, c; small {
			return p, true
		}
	}
	return p, true
}

// shorten halves a step until it gains.
func shorten(rows []row, p, step coefficients, now float64) (coefficients, float64, bool) {
	for h, k := 1.0, 0; k < maxHalvings; h, k = h/2, k+1 {
		next := coefficients{p[0] + h*step[0], p[1] + h*step[1], p[2] + h*step[2]}
		if !positive(rows, next) {
			continue
		}
		if c := cost(rows, next); c < now {
			return next, c, true
		}
	}
	return p, now, false
}

// positive: the throughput is above 0 wherever it was measured.
func positive(rows []row, p coefficients) bool {
	if !(p[0] > 0) {
		return false
	}
	for _, r := range rows {
		if !(cycle(p, r.n) > 0) {
			return false
		}
	}
	return true
}

// flat is perfect scaling with the throughput per unit of the first row: a start that is always allowed.
func flat(rows []row) coefficients { return coefficients{rows[0].n / rows[0].x} }

// solve is linear least squares of the free coefficients: each row gives its terms, its value, and the unit of its
// error. False: the rows do not determine them.
func solve(rows []row, free []int, of func(row) (coefficients, float64, float64)) (coefficients, bool) {
	var l stats.LeastSquares
	for _, r := range rows {
		l.Add(of(r))
	}
	return l.Solve(free)
}
