package experiment

import (
	"context"
	"errors"
	"math"
	"time"
)

// CapacitySchema is that of Capacity.
const CapacitySchema = "slowpath.find-max/v1"

// Capacity is the highest rate of an open loop that holds a limit, the document slowpath.find-max/v1 (docs/json.md).
type Capacity struct {
	Schema string `json:"schema"`
	Setup
	Limit       string  `json:"limit"`
	Precision   float64 `json:"precision"`    // how far apart the ends of the bracket may be, as a share
	ConfirmRuns int     `json:"confirm_runs"` // loads at either end of the bracket, of which most must agree
	// Holds is the highest rate that held the limit; absent: none did. Fails is the lowest rate above it that did not;
	// absent: none was found.
	Holds *End `json:"holds,omitempty"`
	Fails *End `json:"fails,omitempty"`
	// Confirmed: both ends are what most of their confirmation runs say, and the other loads do not contradict them.
	Confirmed bool `json:"confirmed"`
	// Contradicting loads failed clearly below Holds, or held clearly above Fails: something else than the rate
	// decided.
	Contradicting int `json:"contradicting"`
	// no lower rate is tried: a load would have too few calls to judge
	LowestPerSecond float64  `json:"lowest_per_second"`
	Interrupted     bool     `json:"interrupted"`
	Trials          []Trial  `json:"trials"`
	Summary         string   `json:"summary"` // in one sentence
	Notes           []string `json:"notes"`
}

// End is an end of the bracket.
type End struct {
	PerSecond float64 `json:"per_second"`
	Outcome   string  `json:"outcome"` // Holds; Fails or Untested
	Agree     int     `json:"agree"`   // confirmation runs that had this outcome
	Of        int     `json:"of"`      // all of them at this rate
	Why       string  `json:"why,omitempty"`
}

// CapacityOptions say what is searched.
type CapacityOptions struct {
	Setup        Setup
	Limit        Limit
	Start        float64 // calls per second of the first trial
	MaxPerSecond float64 // the highest rate that is tried
	Precision    float64 // 0.05: the ends of the bracket are at most 5 % apart
	Confirm      int     // confirmation runs at either end
	MaxRuns      int     // loads after which it ends with the bracket so far
	// Load makes one load at a rate, in calls per second, for a part of Setup's duration and warm-up, 0 to 1.
	Load func(ctx context.Context, perSecond, part float64) (Run, error)
	// Progress, if set, is called before each load.
	Progress func(Step)
}

// Step is the next load, and how far the search is.
type Step struct {
	Load         int // from 1
	PerSecond    float64
	Purpose      string
	Holds, Fails float64       // the bracket so far; 0 and +Inf are open ends
	Left         time.Duration // estimated, if no load contradicts another
}

// FindCapacity finds the highest rate that holds a limit. With short loads it doubles the rate until one fails, and
// then halves the bracket (in logarithms). With loads of the whole duration it confirms both ends, since one load may
// hold or fail by chance. An end that is not confirmed moves on; when that happens again a wider bracket is accepted,
// as loads that do not agree allow no narrower one. A Capacity without Holds says that no rate held. When ctx ends, the
// bracket so far is the result.
func FindCapacity(ctx context.Context, o CapacityOptions) (*Capacity, error) {
	c := &Capacity{
		Schema: CapacitySchema, Setup: o.Setup, Limit: o.Limit.String(), Precision: o.Precision,
		ConfirmRuns: o.Confirm,
		Trials:      []Trial{}, Notes: []string{}, LowestPerSecond: o.lowest(),
	}
	h := &capacitySearch{
		CapacityOptions: o, c: c, high: math.Inf(1), above: map[float64]string{},
		precision: o.Precision,
	}
	err := h.search(ctx)
	switch {
	case errors.Is(err, errBudget):
	case ctx.Err() != nil:
		c.Interrupted = true
	case err != nil:
		return nil, err
	}
	h.conclude()
	return c, nil
}

// errBudget ends a search that has made all its loads.
var errBudget = errors.New("no loads are left")

// capacitySearch is the state of FindCapacity.
type capacitySearch struct {
	CapacityOptions
	c         *Capacity
	low       float64            // the highest rate that is taken to hold; 0: none yet
	high      float64            // the lowest above it that is taken not to; +Inf: none yet
	above     map[float64]string // rates that did not hold, with their outcome
	confirmed bool
	precision float64 // that is reached for
	moves     int     // of ends that were not confirmed
}

// lowest is the rate below which nothing is tried, in calls per second: a load must have at least one call above each
// quantile of the limit.
func (o *CapacityOptions) lowest() float64 {
	const least = 1
	if o.Setup.DurationNs == 0 {
		return least
	}
	return max(least, float64(o.Limit.callsNeeded())/callsBeyond/(float64(o.Setup.DurationNs)/1e9))
}

func (h *capacitySearch) search(ctx context.Context) error {
	next := max(h.Start, h.c.LowestPerSecond)
	for {
		if err := h.bracket(ctx, next); err != nil {
			return err
		}
		if h.low == 0 {
			return nil
		}
		if err := h.narrow(ctx); err != nil {
			return err
		}
		if moved, err := h.confirm(ctx); err != nil || !moved {
			return err
		}
		if h.moves++; h.moves > 1 {
			h.precision = min(2*h.precision, max(h.Precision, widest))
		}
		if next = 2 * h.low; h.low == 0 { // the lower end held by chance
			next = h.below(h.high)
		}
	}
}

// widest is the widest bracket that is still useful.
const widest = 0.4

// bracket finds a rate that holds and one above it that does not.
func (h *capacitySearch) bracket(ctx context.Context, rate float64) error {
	for rate >= h.c.LowestPerSecond && h.low < h.MaxPerSecond && (h.low == 0 || math.IsInf(h.high, 1)) {
		rate = min(rate, h.MaxPerSecond)
		outcome, err := h.probe(ctx, rate)
		if err != nil {
			return err
		}
		h.record(rate, outcome)
		if rate *= 2; outcome != Holds {
			rate = h.below(rate / 2)
		}
	}
	return nil
}

// below is half of a rate that did not hold, or the lowest rate once.
func (h *capacitySearch) below(rate float64) float64 {
	if lowest := h.c.LowestPerSecond; rate > lowest {
		return max(rate/2, lowest)
	}
	return rate / 2
}

// narrow halves the bracket until it is as narrow as the precision.
func (h *capacitySearch) narrow(ctx context.Context) error {
	for !math.IsInf(h.high, 1) && h.high > h.low*(1+h.precision)*(1+1e-9) {
		rate := readable(math.Sqrt(h.low*h.high), h.low, h.high)
		outcome, err := h.probe(ctx, rate)
		if err != nil {
			return err
		}
		h.record(rate, outcome)
	}
	return nil
}

// readable rounds a rate to three digits, if that stays well within the bracket.
func readable(rate, low, high float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
	if r := math.Round(rate/unit) * unit; r > low*1.001 && r < high*0.999 {
		return r
	}
	return rate
}

func (h *capacitySearch) record(rate float64, outcome string) {
	if outcome == Holds {
		h.low = rate
		return
	}
	h.high, h.above[rate] = rate, outcome
}

// probe judges a rate by short loads: one that holds is enough, since it will be confirmed; after one that does not a
// second load decides.
func (h *capacitySearch) probe(ctx context.Context, rate float64) (string, error) {
	first, err := h.trial(ctx, rate, PurposeSearch)
	if err != nil || first == Holds {
		return first, err
	}
	second, err := h.trial(ctx, rate, PurposeSearch)
	if second == Holds || first != Fails {
		return second, err
	}
	return first, err
}
