package scalability

import (
	"math"
	"math/rand/v2"

	moremath "github.com/aclements/go-moremath/stats"

	"slowpath/internal/stats"
)

// draws of the bootstrap: the ends of a 95 % interval are then the 25th values of a thousand.
const draws = 1000

// intervals are those of a residual bootstrap (Efron and Tibshirani, 1993, chapter 9): it draws errors of the
// observations, fits again, and takes the middle 95 % of the fits. Unlike intervals from derivatives they respect that
// σ and κ are not below 0.
func (f *Fit) intervals(obs []Observation, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(obs))))
	errs := f.errors(obs)
	rows := make([]row, len(obs))
	var lambda, sigma, kappa, peak, knee []float64
	for range draws {
		for i, o := range obs {
			x := f.At(o.N)
			rows[i] = row{o.N, x * max(1+errs[rng.IntN(len(errs))], 0.01), x}
		}
		p, ok := leastSquares(rows)
		if !ok {
			continue
		}
		l := lawOf(p)
		lambda, sigma, kappa = append(lambda, l.Lambda), append(sigma, l.Sigma), append(kappa, l.Kappa)
		peak, knee = append(peak, l.Peak()), append(knee, l.Knee(f.Gain))
	}
	f.LambdaIn, f.SigmaIn, f.KappaIn = intervalOf(lambda), intervalOf(sigma), intervalOf(kappa)
	f.PeakIn, f.KneeIn = intervalOf(peak), intervalOf(knee)
}

// errors are the relative errors of the observations, widened: three fitted parameters make them too small, and few
// observations show no tails (Student's t).
func (f *Fit) errors(obs []Observation) []float64 {
	n := float64(len(obs))
	df := n - 3
	t := moremath.InvCDF(moremath.TDist{V: df})((1 + Confidence) / 2)
	z := moremath.StdNormal.InvCDF((1 + Confidence) / 2)
	widen := math.Sqrt(n/df) * t / z
	errs := make([]float64, len(obs))
	mean := 0.0
	for i, o := range obs {
		errs[i] = o.X/f.At(o.N) - 1
		mean += errs[i] / n
	}
	for i := range errs {
		errs[i] = (errs[i] - mean) * widen
	}
	return errs
}

func intervalOf(values []float64) Interval {
	low, high := stats.Central(values, Confidence)
	return Interval{low, high}
}
