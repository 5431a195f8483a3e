package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestRankSums: the distribution of the sum of ranks is that of all choices of signs.
func TestRankSums(t *testing.T) {
	const n = 8
	counts := make([]float64, n*(n+1)/2+1)
	for signs := range 1 << n {
		sum := 0
		for rank := range n {
			if signs>>rank&1 == 1 {
				sum += rank + 1
			}
		}
		counts[sum] += 1.0 / (1 << n)
	}
	for sum, p := range rankSums(n) {
		if math.Abs(p-counts[sum]) > 1e-15 {
			t.Errorf("P(%d) = %g, want %g", sum, p, counts[sum])
		}
	}
}

func TestComparePairs(t *testing.T) {
	p := ComparePairs([]float64{1, 2, 3, 4, 5, 6, 7, 8})
	if p.Shift != 4.5 || p.P != 1.0/256 || p.Low <= 0 || p.Pairs != 8 {
		t.Errorf("all above: %+v", p)
	}
	p = ComparePairs([]float64{-1, 2, -3, 4})
	if p.P < 0.1 || !math.IsInf(p.Low, -1) {
		t.Errorf("four pairs have no interval: %+v", p)
	}
	if p := ComparePairs([]float64{math.NaN()}); p.Pairs != 0 || p.P != 1 {
		t.Errorf("no pairs: %+v", p)
	}
}

// TestComparePairsProperties: a shift of all differences shifts the estimate and its interval, and the interval is
// above 0 where the test says so.
func TestComparePairsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 14).Draw(t, "differences")
		by := rapid.Float64Range(-50, 50).Draw(t, "by")
		p := ComparePairs(d)
		if p.Low > p.Shift || p.Shift > p.High || p.P <= 0 || p.P > 1 {
			t.Fatalf("%+v", p)
		}
		if above := p.Low > 0; above != (p.P <= (1-Confidence)/2) {
			t.Errorf("interval from %g, P %g", p.Low, p.P)
		}
		shifted := make([]float64, len(d))
		for i, v := range d {
			shifted[i] = v + by
		}
		q := ComparePairs(shifted)
		if math.Abs(q.Shift-p.Shift-by) > 1e-9 || !math.IsInf(p.Low, -1) && math.Abs(q.Low-p.Low-by) > 1e-9 {
			t.Errorf("by %g: %+v, %+v", by, p, q)
		}
	})
}

// TestPowerOfPairs: of twelve pairs, how often a shift is found, by its size in standard deviations of the differences.
// docs/truth.md has what it logs.
func TestPowerOfPairs(t *testing.T) {
	const runs = 4000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ shift, low, high float64 }{
		{0, 0, 0.035},
		{0.5, 0.25, 0.45},
		{1, 0.8, 0.95},
		{1.5, 0.97, 1},
		{2, 0.99, 1},
	} {
		found := 0
		for range runs {
			d := make([]float64, 12)
			for i := range d {
				d[i] = c.shift + rng.NormFloat64()
			}
			if ComparePairs(d).Low > 0 {
				found++
			}
		}
		share := float64(found) / runs
		t.Logf("shift of %.1f standard deviations: found in %.1f %%", c.shift, 100*share)
		if share < c.low || share > c.high {
			t.Errorf("shift %g: found in %g of the runs, want %g to %g", c.shift, share, c.low, c.high)
		}
	}
}

// TestProportion: known values, and an interval that holds the share and gets narrower.
func TestProportion(t *testing.T) {
	if low, high := Proportion(9, 10); math.Abs(low-0.5958) > 1e-3 || math.Abs(high-0.9821) > 1e-3 {
		t.Errorf("9 of 10: %g to %g", low, high)
	}
	if low, high := Proportion(0, 0); low != 0 || high != 1 {
		t.Errorf("0 of 0: %g to %g", low, high)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		low, high := Proportion(k, n)
		share := float64(k) / float64(n)
		if low < 0 || high > 1 || low > share+1e-12 || high < share-1e-12 {
			t.Errorf("%d of %d: %g to %g", k, n, low, high)
		}
		if l, h := Proportion(10*k, 10*n); h-l >= high-low {
			t.Errorf("%d of %d is as exact as ten times as many", k, n)
		}
	})
}
