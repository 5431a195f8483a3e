package scalability

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// draws of the bootstrap: the ends of a 95 % interval are then the 25th values of a thousand.
const draws = 1000

// intervals draws the errors of the observations again and again, fits anew, and takes what 95 % of the fits say (the
// residual bootstrap; Efron and Tibshirani, 1993, chapter 9). Unlike intervals from derivatives it knows that σ and κ
// end at 0.
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
		l := p.law()
		lambda, sigma, kappa = append(lambda, l.Lambda), append(sigma, l.Sigma), append(kappa, l.Kappa)
		peak, knee = append(peak, l.Peak()), append(knee, l.Knee(f.Gain))
	}
	f.LambdaIn, f.SigmaIn, f.KappaIn = middle(lambda), middle(sigma), middle(kappa)
	f.PeakIn, f.KneeIn = middle(peak), middle(knee)
}

// errors are the relative errors of the observations, wider than they look: three parameters have bent the law towards
// them, and of few observations the tails are not seen (Student's t).
func (f *Fit) errors(obs []Observation) []float64 {
	n := float64(len(obs))
	df := n - 3
	t := stats.InvCDF(stats.TDist{V: df})((1 + Confidence) / 2)
	z := stats.StdNormal.InvCDF((1 + Confidence) / 2)
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

func middle(values []float64) Interval {
	if len(values) == 0 {
		return Interval{math.NaN(), math.NaN()}
	}
	slices.Sort(values)
	tail := (1 - Confidence) / 2
	n := float64(len(values) - 1)
	return Interval{values[int(math.Floor(tail*n))], values[int(math.Ceil((1-tail)*n))]}
}
