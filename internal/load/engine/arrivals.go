package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrival processes of an open loop.
const (
	Uniform = "uniform" // evenly, 1/rate apart
	Poisson = "poisson" // independent of each other, as the calls of many users
)

// Stretch is a part of a schedule: the rate changes linearly from From to To.
type Stretch struct {
	Lasts    time.Duration
	From, To float64 // calls per second
}

// arrivals gives the times at which the calls of one worker of n are due. The workers share a uniform schedule: the
// k-th call of worker w is call k*n+w of it. Of a Poisson schedule each worker draws a process of its own, at 1/n of
// the rate: together they are a Poisson process of the whole rate.
type arrivals struct {
	stretches []Stretch
	rng       *rand.Rand // nil: uniform
	step      float64    // calls of all workers from one of this worker to the next

	due  float64 // calls of all workers before the next of this one
	done float64 // calls of all workers before the first of the stretches that are left
	from int64   // their start, ns from the start of the load
}

func newArrivals(s []Stretch, process string, worker, workers int, seed uint64) (*arrivals, error) {
	a := &arrivals{stretches: s, step: float64(workers), due: float64(worker)}
	switch process {
	case Uniform:
	case Poisson:
		a.rng = rand.New(rand.NewPCG(seed, uint64(worker)))
		a.due = a.rng.ExpFloat64() * a.step
	default:
		return nil, fmt.Errorf("arrivals %q: they are %s or %s", process, Uniform, Poisson)
	}
	return a, nil
}

// next gives when the next call is due, ns from the start; false when the schedule has ended.
func (a *arrivals) next() (int64, bool) {
	for len(a.stretches) > 0 {
		s := a.stretches[0]
		seconds := s.Lasts.Seconds()
		calls := (s.From + s.To) / 2 * seconds
		if a.due < a.done+calls {
			at := a.from + int64(s.after(a.due-a.done)*1e9)
			step := a.step
			if a.rng != nil {
				step *= a.rng.ExpFloat64()
			}
			a.due += step
			return at, true
		}
		a.done += calls
		a.from += int64(s.Lasts)
		a.stretches = a.stretches[1:]
	}
	return 0, false
}

// after gives the seconds into the stretch after which n calls were due: n = From*t + (To-From)/(2*Lasts)*t².
func (s Stretch) after(n float64) float64 {
	slope := (s.To - s.From) / s.Lasts.Seconds()
	if slope == 0 {
		return n / s.From
	}
	return 2 * n / (s.From + math.Sqrt(max(0, s.From*s.From+2*slope*n)))
}
