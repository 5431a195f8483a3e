package experiment

import (
	"math"

	"slowpath/internal/load/scalability"
)

// Law is the universal scalability law as fitted, X(N) = λN / (1 + σ(N-1) + κN(N-1)).
type Law struct {
	Lambda Estimate `json:"lambda_per_second"` // throughput of one
	Sigma  Estimate `json:"sigma"`             // contention
	Kappa  Estimate `json:"kappa"`             // coherency
	// the concurrency with the highest throughput; absent where the law has none
	Peak *Estimate `json:"peak,omitempty"`
	R2   float64   `json:"r_squared"`
	// LackOfFit is the chance of being so far off by the noise between repeats alone; absent without repeats.
	LackOfFit *float64 `json:"lack_of_fit_p,omitempty"`
	// Noise is the standard deviation of repeats from their mean, as a share of it; absent without repeats.
	Noise    *float64 `json:"noise,omitempty"`
	WorstAt  int      `json:"worst_value"` // where it differs most from the measurements
	WorstOff float64  `json:"worst_off"`   // by this share: above 0 it promises too much
	Holds    bool     `json:"holds"`       // it describes the measurements, within their noise
}

// Estimate is a value with its interval of 95 % confidence; a bound that is not known is null.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

func estimate(v, low, high float64) Estimate {
	return Estimate{v, finite(low), finite(high)}
}

func estimateIn(v float64, i scalability.Interval) Estimate { return estimate(v, i.Low, i.High) }

// finite is nil for what JSON cannot express.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

func lawOf(f *scalability.Fit) *Law {
	worst := f.Worst()
	l := &Law{
		Lambda: estimateIn(f.Lambda, f.LambdaIn), Sigma: estimateIn(f.Sigma, f.SigmaIn),
		Kappa: estimateIn(f.Kappa, f.KappaIn),
		R2:    f.R2, LackOfFit: finite(f.LackOfFit), Noise: finite(f.Noise), WorstAt: int(worst.N),
		WorstOff: worst.Off(), Holds: f.Holds(),
	}
	if p := f.Peak(); !math.IsInf(p, 1) {
		e := estimateIn(p, f.PeakIn)
		l.Peak = &e
	}
	return l
}

// At gives the throughput by the law at a concurrency, in calls per second.
func (l *Law) At(n float64) float64 {
	return scalability.Law{Lambda: l.Lambda.Value, Sigma: l.Sigma.Value, Kappa: l.Kappa.Value}.At(n)
}
