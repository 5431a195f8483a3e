package scalability

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"
)

// Observation is one measurement: X calls per second at concurrency N. Both are above 0.
type Observation struct{ N, X float64 }

// Interval is a confidence interval; High is +Inf where the observations set no bound.
type Interval struct{ Low, High float64 }

// Point is all the observations of one concurrency.
type Point struct {
	N, Mean float64
	Fitted  float64 // by the law
	Repeats int
}

// Off is the relative error of the law: above 0, it predicts more than was measured.
func (p Point) Off() float64 { return p.Fitted/p.Mean - 1 }

// Fit is the law with the least squares of relative errors.
type Fit struct {
	Law
	// Intervals of the parameters, of Peak and of Knee at the gain that was asked for, at Confidence.
	LambdaIn, SigmaIn, KappaIn, PeakIn, KneeIn Interval
	Gain                                       float64

	Points []Point
	// share of the variance of the throughput that the law explains; below 0 where a constant explains more
	R2 float64
	// LackOfFit is the probability of errors this large if the law held, by the noise between repeats alone (F test);
	// NaN without repeats.
	LackOfFit float64
	// Noise is the standard deviation of repeats from their mean, as a share of it; NaN without repeats.
	Noise float64
}

// Confidence of the intervals.
const Confidence = 0.95

// ErrFew: the law has three parameters, so that three points always fit.
var ErrFew = errors.New("the law needs at least 4 different levels of concurrency")

// ErrNoFit: there is no law with σ ≥ 0 and κ ≥ 0.
var ErrNoFit = errors.New("the throughput falls faster than the law can describe")

// New fits the law. Gain is that of Knee. The intervals are made with random numbers of the seed.
func New(obs []Observation, gain float64, seed uint64) (*Fit, error) {
	points := byConcurrency(obs)
	if len(points) < 4 {
		return nil, fmt.Errorf("%w, there are %d", ErrFew, len(points))
	}
	for _, o := range obs {
		if !(o.N > 0) || !(o.X > 0) || math.IsInf(o.N*o.X, 1) {
			return nil, fmt.Errorf("%g calls per second at %g: both must be above 0", o.X, o.N)
		}
	}
	p, ok := leastSquares(rowsOf(obs, points))
	if !ok {
		return nil, ErrNoFit
	}
	f := &Fit{Law: lawOf(p), Gain: gain, Points: points}
	for i := range points {
		points[i].Fitted = f.At(points[i].N)
	}
	f.R2 = f.explained()
	f.LackOfFit, f.Noise = f.lackOfFit(obs)
	f.intervals(obs, seed)
	return f, nil
}

// byConcurrency takes the mean of each concurrency, in ascending order.
func byConcurrency(obs []Observation) []Point {
	sorted := slices.SortedFunc(slices.Values(obs), func(a, b Observation) int { return cmp.Compare(a.N, b.N) })
	var points []Point
	for _, o := range sorted {
		if len(points) == 0 || points[len(points)-1].N != o.N {
			points = append(points, Point{N: o.N})
		}
		p := &points[len(points)-1]
		p.Mean += o.X
		p.Repeats++
	}
	for i := range points {
		points[i].Mean /= float64(points[i].Repeats)
	}
	return points
}

// rowsOf gives each observation the unit of its error: the mean of its point. Noise of throughput is proportional to it
// (schedulers, neighbours), and few repeats estimate their own spread too roughly.
func rowsOf(obs []Observation, points []Point) []row {
	rows := make([]row, len(obs))
	for i, o := range obs {
		rows[i] = row{o.N, o.X, pointOf(points, o.N).Mean}
	}
	return rows
}

func pointOf(points []Point, n float64) *Point {
	i, _ := slices.BinarySearchFunc(points, n, func(p Point, n float64) int { return cmp.Compare(p.N, n) })
	return &points[i]
}

func (f *Fit) explained() float64 {
	mean := 0.0
	for _, p := range f.Points {
		mean += p.Mean / float64(len(f.Points))
	}
	var left, all float64
	for _, p := range f.Points {
		left += (p.Mean - p.Fitted) * (p.Mean - p.Fitted)
		all += (p.Mean - mean) * (p.Mean - mean)
	}
	if all == 0 {
		return 0
	}
	return 1 - left/all
}

// lackOfFit compares the errors of the points with the noise between their repeats.
func (f *Fit) lackOfFit(obs []Observation) (p, deviation float64) {
	var off, noise float64
	for _, p := range f.Points {
		off += float64(p.Repeats) * p.Off() * p.Off()
	}
	for _, o := range obs {
		m := pointOf(f.Points, o.N).Mean
		noise += (o.X/m - 1) * (o.X/m - 1)
	}
	d1, d2 := float64(len(f.Points)-3), float64(len(obs)-len(f.Points))
	if d2 == 0 {
		return math.NaN(), math.NaN()
	}
	if noise == 0 {
		if off < 1e-12 {
			return 1, 0
		}
		return 0, 0
	}
	ratio := (off / d1) / (noise / d2)
	return mathx.BetaInc(d2/(d2+d1*ratio), d2/2, d1/2), math.Sqrt(noise / d2) // the upper tail of F with d1, d2
}

// Worst is the point with the largest relative error.
func (f *Fit) Worst() Point {
	return slices.MaxFunc(f.Points, func(a, b Point) int { return cmp.Compare(math.Abs(a.Off()), math.Abs(b.Off())) })
}

// fitAlpha is the LackOfFit below which noise does not explain the errors.
const fitAlpha = 0.01

// Holds: the law describes the measurements. It does not where a point is off by more than Gain, which would misplace
// the knee, unless noise explains it.
func (f *Fit) Holds() bool {
	return math.Abs(f.Worst().Off()) <= f.Gain || f.LackOfFit >= fitAlpha
}
