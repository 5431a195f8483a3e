package experiment

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"slowpath/internal/load/scalability"
)

// SweepSchema is that of Sweep.
const SweepSchema = "slowpath.sweep/v1"

// Sweep is loads along an axis and what they show, the document slowpath.sweep/v1 (docs/json.md).
type Sweep struct {
	Schema string `json:"schema"`
	Setup
	Axis        string   `json:"axis"`
	Repeats     int      `json:"repeats"` // loads per value, as asked for
	Seed        uint64   `json:"seed"`    // of the order of the loads
	Interrupted bool     `json:"interrupted"`
	Points      []Point  `json:"points"`
	Law         *Law     `json:"law,omitempty"`
	NoLaw       string   `json:"no_law,omitempty"` // why there is none
	Knee        *Knee    `json:"knee,omitempty"`
	Summary     string   `json:"summary"` // the knee in one sentence
	Notes       []string `json:"notes"`   // what one must know to read it
}

// Point is the loads at one value of the axis. Its numbers are medians over its loads, without those that the generator
// limited if there are others.
type Point struct {
	Value             int     `json:"value"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	Low               float64 `json:"low_per_second"`  // the slowest of its loads
	High              float64 `json:"high_per_second"` // the fastest
	Latency           Latency `json:"latency"`
	ErrorShare        float64 `json:"error_share"`
	// GeneratorLimited: most of its loads were limited by the generator. The point is left out of law and knee.
	GeneratorLimited bool   `json:"generator_limited"`
	LimitedBy        string `json:"limited_by,omitempty"` // that of more than half of its loads
	Runs             []Run  `json:"runs"`
}

// SweepOptions say what a sweep does.
type SweepOptions struct {
	Setup   Setup
	Axis    Axis
	Repeats int     // loads per value, at least 1
	Gain    float64 // of throughput by twice the concurrency, as a share: below it is the knee
	Seed    uint64
	// Load makes one load at a value of the axis.
	Load func(ctx context.Context, value int) (Run, error)
	// Progress, if set, is called before each load with its number, from 1, and the number of loads.
	Progress func(n, of, value int)
}

// MakeSweep makes the loads and draws the conclusions. The loads are made in rounds: each has every value once, in a
// random order, so that a machine that gets slower meanwhile slows all values alike and does not look like a knee. When
// ctx ends, the loads so far are the result; without any it is an error.
func MakeSweep(ctx context.Context, o SweepOptions) (*Sweep, error) {
	s := &Sweep{
		Schema: SweepSchema, Setup: o.Setup, Axis: o.Axis.Name, Repeats: o.Repeats, Seed: o.Seed,
		Notes: []string{},
	}
	runs := map[int][]Run{}
	for n, value := range order(o.Axis.Values, o.Repeats, o.Seed) {
		if o.Progress != nil {
			o.Progress(n+1, len(o.Axis.Values)*o.Repeats, value)
		}
		r, err := o.Load(ctx, value)
		if ctx.Err() != nil { // a load that was cut short does not count
			s.Interrupted = true
			break
		}
		if err != nil {
			return nil, err
		}
		r.Order = n + 1
		runs[value] = append(runs[value], r)
	}
	if len(runs) == 0 {
		return nil, errors.Join(errors.New("no load was finished"), ctx.Err())
	}
	for _, value := range o.Axis.Values {
		if rs := runs[value]; len(rs) > 0 {
			s.Points = append(s.Points, pointOf(value, rs))
		}
	}
	s.conclude(o)
	return s, nil
}

// order is that of the loads: in each round every value once, shuffled.
func order(values []int, rounds int, seed uint64) []int {
	rng := rand.New(rand.NewPCG(seed, uint64(len(values))))
	var out []int
	for range rounds {
		round := slices.Clone(values)
		rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		out = append(out, round...)
	}
	return out
}

// conclude fits the law where there is one and names the knee.
func (s *Sweep) conclude(o SweepOptions) {
	if o.Axis.concurrency() {
		s.Knee = s.findKnee(o.Gain, s.fit(o))
	} else {
		s.NoLaw = "throughput by " + o.Axis.Name + " follows no law of scalability"
	}
	s.Summary = s.sentence(o.Gain)
	s.addNotes(o)
}

// fit fits the law to the loads that the generator did not limit, and gives the knee by it.
func (s *Sweep) fit(o SweepOptions) (knee Estimate) {
	var obs []scalability.Observation
	for _, p := range s.validPoints() {
		for _, r := range p.validRuns() {
			obs = append(obs, scalability.Observation{N: float64(p.Value), X: r.RequestsPerSecond})
		}
	}
	f, err := scalability.New(obs, o.Gain, o.Seed)
	if err != nil {
		s.NoLaw = err.Error()
		return knee
	}
	s.Law = lawOf(f)
	return estimateIn(f.Knee(o.Gain), f.KneeIn)
}

// validPoints are the points that the generator did not limit.
func (s *Sweep) validPoints() (out []Point) {
	for _, p := range s.Points {
		if !p.GeneratorLimited {
			out = append(out, p)
		}
	}
	return out
}
