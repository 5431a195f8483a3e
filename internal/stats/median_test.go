package stats

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []int64
		median int64
	}{{nil, 0}, {[]int64{7}, 7}, {[]int64{9, 1}, 5}, {[]int64{4, 1}, 2}, {[]int64{5, 1, 9}, 5}, {
		[]int64{9, 1, 5, 8},
		6,
	}} {
		if got := Median(c.values); got != c.median {
			t.Errorf("median of %v: %d, want %d", c.values, got, c.median)
		}
	}
	values := []float64{3, 1, 2, 4}
	if got := Median(values); got != 2.5 || values[0] != 3 {
		t.Errorf("%v, and the values are now %v", got, values)
	}
	if got := MedianUpper([]string{"a", "b", "c", "d"}); got != "c" {
		t.Errorf("upper of the middle two of four: %s", got)
	}
}

func TestQuantile(t *testing.T) {
	ten := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]int{0: 1, 0.04: 1, 0.5: 5, 0.54: 5, 0.55: 6, 0.9: 9, 0.99: 10, 1: 10} {
		if got := Quantile(ten, q); got != want {
			t.Errorf("quantile %g of 1 to 10: %d, want %d", q, got, want)
		}
	}
}

func TestCentral(t *testing.T) {
	var values []float64
	for i := range 101 {
		values = append(values, float64(100-i))
	}
	if low, high := Central(values, 0.5); low != 25 || high != 75 {
		t.Errorf("50 %% of 0 to 100: %g to %g", low, high)
	}
	if low, high := Central(values, 0.95); low != 2 || high != 98 {
		t.Errorf("95 %% of 0 to 100, outwards to whole ones: %g to %g", low, high)
	}
	if low, high := Central(nil, 0.95); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("of nothing: %g to %g", low, high)
	}
}
