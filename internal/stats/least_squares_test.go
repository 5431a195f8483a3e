package stats

import (
	"math"
	"testing"
)

func solved(t *testing.T, free []int, rows [][3]float64, y func([3]float64) float64) Coefficients {
	t.Helper()
	var l LeastSquares
	for _, r := range rows {
		l.Add(r, y(r), y(r)) // relative errors
	}
	c, ok := l.Solve(free)
	if !ok {
		t.Fatalf("%v of %v: not determined", free, rows)
	}
	return c
}

// TestLeastSquaresExact: terms of very different sizes give back the coefficients that made the values.
func TestLeastSquaresExact(t *testing.T) {
	rows := [][3]float64{{1, 3, 3}, {1, 12, 144}, {1, 300, 9e4}, {1, 1000, 1e6}, {1, 5, 25}}
	for _, want := range []Coefficients{{10, 2, 0.05}, {0, 8, 0.1}, {3, 0, 1e-6}} {
		got := solved(t, []int{0, 1, 2}, rows, func(r [3]float64) float64 {
			return want[0]*r[0] + want[1]*r[1] + want[2]*r[2]
		})
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9*(1+want[i]) {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
}

// TestLeastSquaresFree: coefficients that are not free stay 0, and the others are the best without them.
func TestLeastSquaresFree(t *testing.T) {
	rows := [][3]float64{{1, 1, 7}, {1, 2, 7}, {1, 4, 9}}
	if c := solved(t, []int{1}, rows, func(r [3]float64) float64 { return 3 * r[1] }); c[0] != 0 || c[2] != 0 ||
		math.Abs(c[1]-3) > 1e-12 {
		t.Errorf("%v, want 0 3 0", c)
	}
	// The mean of 2 and 4 by squares of relative errors: Σ1/y / Σ1/y².
	two := [][3]float64{{1, 2, 0}, {1, 4, 0}}
	if c := solved(t, []int{0}, two, func(r [3]float64) float64 { return r[1] }); math.Abs(c[0]-2.4) > 1e-12 {
		t.Errorf("%v, want 2.4", c)
	}
}

func TestLeastSquaresUndetermined(t *testing.T) {
	var l LeastSquares
	if _, ok := l.Solve([]int{0}); ok {
		t.Error("solved without observations")
	}
	for _, r := range [][3]float64{{1, 2, 4}, {2, 4, 8}, {3, 6, 12}} {
		l.Add(r, 1, 1)
	}
	if c, ok := l.Solve([]int{0, 1}); ok {
		t.Errorf("terms that are multiples of each other gave %v", c)
	}
	if _, ok := l.Solve([]int{2}); !ok {
		t.Error("one of them alone is determined")
	}
}
