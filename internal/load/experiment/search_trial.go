package experiment

import (
	"context"
	"errors"
	"math"
	"time"
)

func (h *capacitySearch) trial(ctx context.Context, rate float64, purpose string) (string, error) {
	n := len(h.c.Trials) + 1
	if n > h.MaxRuns {
		return "", errBudget
	}
	if h.Progress != nil {
		h.Progress(Step{Load: n, PerSecond: rate, Purpose: purpose, Holds: h.low, Fails: h.high, Left: h.left(rate,
			purpose)})
	}
	r, err := h.Load(ctx, rate, h.part(rate, purpose))
	if err := errors.Join(ctx.Err(), err); err != nil {
		return "", err
	}
	r.Order = n
	t := Trial{PerSecond: rate, Purpose: purpose, Run: r}
	t.Outcome, t.Why = h.Limit.judge(r)
	h.c.Trials = append(h.c.Trials, t)
	return t.Outcome, nil
}

// shortPart of the duration is enough for rates that are not near the limit. Loads of the whole duration at the ends
// correct its errors.
const shortPart = 0.2

// part is the share of the whole duration that a load takes: all of it to confirm an end, and else what gives enough
// calls for the limit.
func (h *capacitySearch) part(rate float64, purpose string) float64 {
	whole := rate * float64(h.Setup.DurationNs) / 1e9 // calls
	if purpose == PurposeConfirm || whole <= 0 {
		return 1
	}
	return min(1, max(shortPart, float64(h.Limit.callsNeeded())/whole))
}

// doublings is the number that is expected while no rate has failed: they lead from 1000 to 128 000 calls per second.
const doublings = 7

// left is the estimated time to the end of the search, with the next load, if no load contradicts another.
func (h *capacitySearch) left(rate float64, purpose string) time.Duration {
	whole := time.Duration(h.Setup.DurationNs + h.Setup.WarmUpNs)
	short := time.Duration(float64(whole) * h.part(rate, PurposeSearch))
	majority := h.Confirm/2 + 1
	half := time.Duration(majority) * short
	switch purpose {
	case PurposeHalf:
		return max(short, half-time.Duration(h.trialsAt(rate, purpose))*short)
	case PurposeConfirm:
		done := h.trialsAt(h.low, purpose) + h.trialsAt(h.high, purpose)
		return time.Duration(max(1, 2*majority-done))*whole + half
	}
	from, to := h.low, h.high
	searching := 0.0
	if from == 0 || math.IsInf(to, 1) {
		searching = max(1, doublings-math.Log2(max(rate, 1)/1000))
		from, to = 1, 2
	}
	// About half of the rates between fail, and are tried twice.
	searching += 1.5 * max(0, math.Ceil(math.Log2(math.Log(to/from)/math.Log(1+h.precision))))
	return time.Duration(searching*float64(short)) + time.Duration(2*majority)*whole + half
}

// trialsAt counts the loads with this purpose at a rate.
func (h *capacitySearch) trialsAt(rate float64, purpose string) (n int) {
	for _, t := range h.c.Trials {
		if t.PerSecond == rate && t.Purpose == purpose {
			n++
		}
	}
	return n
}
