package stats

import "math"

// Coefficients are those of a sum of three terms.
type Coefficients [3]float64

// LeastSquares finds the coefficients of three terms with the smallest sum of squared errors, by the normal equations.
// The zero value has no observations.
type LeastSquares struct {
	m [3][4]float64
}

// Add adds an observation: its terms, the value that their sum should have, and the unit in which its error is counted.
func (l *LeastSquares) Add(terms Coefficients, value, unit float64) {
	for i := range terms {
		for j := range terms {
			l.m[i][j] += terms[i] * terms[j] / (unit * unit)
		}
		l.m[i][3] += terms[i] * value / (unit * unit)
	}
}

// Solve gives the coefficients of the terms that are free; the others are 0. False: the observations do not determine
// them.
func (l *LeastSquares) Solve(free []int) (c Coefficients, ok bool) {
	k := len(free)
	// Terms may differ by orders of magnitude: scaled to a diagonal of ones, the equations are as well posed as they
	// can be.
	var scale Coefficients
	for i, f := range free {
		if scale[i] = math.Sqrt(l.m[f][f]); !(scale[i] > 0) {
			return c, false
		}
	}
	var m [3][4]float64
	for i, f := range free {
		for j, g := range free {
			m[i][j] = l.m[f][g] / (scale[i] * scale[j])
		}
		m[i][3] = l.m[f][3] / scale[i]
	}
	if !eliminate(&m, k) {
		return c, false
	}
	for i, f := range free {
		c[f] = m[i][3] / scale[i]
	}
	return c, true
}

// singular is the pivot, of equations with a diagonal of ones, below which rounding decides.
const singular = 1e-13

// eliminate solves k equations in place (Gauss-Jordan with pivots).
func eliminate(m *[3][4]float64, k int) bool {
	for i := range k {
		pivot := i
		for j := i + 1; j < k; j++ {
			if math.Abs(m[j][i]) > math.Abs(m[pivot][i]) {
				pivot = j
			}
		}
		if m[i], m[pivot] = m[pivot], m[i]; !(math.Abs(m[i][i]) > singular) {
			return false
		}
		for j := range k {
			if j == i {
				continue
			}
			f := m[j][i] / m[i][i]
			for c := range m[j] {
				m[j][c] -= f * m[i][c]
			}
		}
	}
	for i := range k {
		m[i][3] /= m[i][i]
	}
	return true
}
