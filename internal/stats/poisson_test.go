package stats

import (
	"math"
	"testing"
)

func TestPoissonTail(t *testing.T) {
	for _, c := range []struct {
		count int
		mean  float64
		want  float64
	}{
		{0, 3, 1},
		{1, 0, 0},
		{1, 5, 1 - math.Exp(-5)},
		{2, 0.05, 1 - math.Exp(-0.05)*1.05},
		{3, 1, 1 - 2.5*math.Exp(-1)},
	} {
		if got := PoissonTail(c.count, c.mean); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d or more of %v: %v, want %v", c.count, c.mean, got, c.want)
		}
	}
	for mean := 0.1; mean < 20; mean *= 2 {
		for count := range 40 {
			if a, b := PoissonTail(count, mean), PoissonTail(count+1, mean); b > a {
				t.Errorf("more than %d of %v is more likely than %d", count, mean, count)
			}
		}
	}
	// where the normal distribution takes over, at one, two and three standard deviations
	for _, count := range []int{500, 523, 545, 567} {
		exact, near := PoissonTail(count, largeMean), PoissonTail(count, largeMean+1e-9)
		if math.Abs(exact-near) > 0.01*exact+0.002 {
			t.Errorf("%d or more of %v: %v, and %v by the normal distribution", count, float64(largeMean), exact, near)
		}
	}
	if got := PoissonTail(10_300, 10_000); got > 0.002 || got < 0.001 {
		t.Errorf("three standard deviations: %v", got)
	}
}
