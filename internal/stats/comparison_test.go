package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sample draws values as benchmarks give them: noise that is a share, and in 10 % something else ran and cost
// more.
func sample(rng *rand.Rand, n int, center, noise float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = center * math.Exp(noise*rng.NormFloat64())
		if rng.IntN(10) == 0 {
			out[i] *= 1 + 5*noise*rng.Float64()
		}
	}
	return out
}

// metrics are as many of a load as are compared, the noise of the latencies larger.
func metrics(rng *rand.Rand, n int, factor float64) []Metric {
	return []Metric{
		{"requests_per_second", true, sample(rng, n, 1e5, 0.02), sample(rng, n, 1e5*factor, 0.02)},
		{"p50", false, sample(rng, n, 2e5, 0.03), sample(rng, n, 2e5/factor, 0.03)},
		{"p99", false, sample(rng, n, 1e6, 0.1), sample(rng, n, 1e6/factor, 0.1)},
		{"p999", false, sample(rng, n, 3e6, 0.3), sample(rng, n, 3e6/factor, 0.3)},
	}
}

// TestNothingChanged: equal things are said to differ, in any metric, in at most about 5 % of the comparisons.
func TestNothingChanged(t *testing.T) {
	const comparisons = 1000
	for _, repeats := range []int{5, 6, 8, 10, 20} {
		wrong := 0
		for seed := range uint64(comparisons) {
			rng := rand.New(rand.NewPCG(seed, uint64(repeats)))
			for _, v := range Compare(metrics(rng, repeats, 1)) {
				if v.Verdict != NoDifference {
					wrong++
					break
				}
			}
		}
		t.Logf("%d repeats: %d of %d comparisons found a difference", repeats, wrong, comparisons)
		// At 5 % more than 65 of 1000 are 2 in 100.
		if wrong > 65 {
			t.Errorf("%d repeats: %d of %d comparisons of equal things found a difference", repeats, wrong, comparisons)
		}
	}
}

// TestTenPercent: a true difference of 10 % is found nearly always in a metric whose noise is a few per cent, and
// its interval has it.
func TestTenPercent(t *testing.T) {
	const comparisons = 300
	found, inside, below := 0, 0, 0
	for seed := range uint64(comparisons) {
		rng := rand.New(rand.NewPCG(seed, 7))
		v := Compare(metrics(rng, 8, 1.1))
		if v[0].Verdict == Faster && v[1].Verdict == Faster {
			found++
		}
		if v[0].Low <= 0.1 && 0.1 <= v[0].High {
			inside++
		}
		if v[0].Verdict == Slower || v[1].Verdict == Slower {
			below++
		}
	}
	t.Logf("found %d, interval holds it %d, of %d", found, inside, comparisons)
	if found < comparisons*9/10 || inside < comparisons*95/100 || below > 0 {
		t.Errorf("found in %d, in the interval in %d, the wrong way round in %d of %d", found, inside, below,
			comparisons)
	}
}

func TestTooFew(t *testing.T) {
	for _, c := range []struct{ repeats, figures, needed int }{{1, 1, 4}, {3, 1, 4}, {3, 4, 5}, {4, 5, 5}} {
		fs := make([]Metric, c.figures)
		for i := range fs {
			for r := range c.repeats {
				fs[i].Old = append(fs[i].Old, 1+float64(r)/100)
				fs[i].New = append(fs[i].New, 100+float64(r))
			}
		}
		v := Compare(fs)[0]
		if v.Verdict != TooFew || v.Needed != c.needed {
			t.Errorf("%d repeats, %d figures: %s, needed %d; want %d", c.repeats, c.figures, v.Verdict, v.Needed,
				c.needed)
		}
	}
}

func TestEstimateMedian(t *testing.T) {
	if m := EstimateMedian([]float64{5, 1, 4, 2, 3, 6}); m.Value != 3.5 || m.Low != 1 || m.High != 6 {
		t.Errorf("%+v", m)
	}
	if m := EstimateMedian([]float64{5, 1, 4, 2, 3}); m.Value != 3 || !math.IsInf(m.Low, -1) || !math.IsInf(m.High, 1) {
		t.Errorf("five have no 95 %% interval: %+v", m)
	}
	if m := EstimateMedian(nil); !math.IsNaN(m.Value) {
		t.Errorf("%+v", m)
	}
}

func TestDrifts(t *testing.T) {
	if !Drifts([]float64{1, 2, 3, 4, 5, 6, 7, 8}) || !Drifts([]float64{9, 8, 7, 6, 5, 4, 3, 2}) {
		t.Error("eight in order are said not to drift")
	}
	wrong := 0
	for seed := range uint64(1000) {
		if Drifts(sample(rand.New(rand.NewPCG(seed, 3)), 10, 1, 0.1)) {
			wrong++
		}
	}
	if wrong > 20 { // at 1 % more than 20 of 1000 are 2 in 1000
		t.Errorf("%d of 1000 steady samples are said to drift", wrong)
	}
}

// TestManyRepeats: where the normal distribution takes over, the interval stays what it was.
func TestManyRepeats(t *testing.T) {
	exact, normal := quantileU(50, 50, 0.025), quantileU(51, 51, 0.025)
	// 1250 - 1.96·sqrt(2500·101/12) = 966; 51² is 101 more, half of it less 29
	if exact < 960 || normal < exact || normal > exact+80 {
		t.Errorf("quantiles of U: %d for 50, %d for 51", exact, normal)
	}
}
