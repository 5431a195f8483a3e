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

// shortPart of the duration is enough to tell rates apart that are not near the limit. What it gets wrong the whole
// loads at the ends show.
const shortPart = 0.2

// part is how much of the whole duration a load takes: all of it at the ends that are confirmed, and elsewhere what
// gives enough calls for the limit.
func (h *capacitySearch) part(rate float64, purpose string) float64 {
	whole := rate * float64(h.Setup.DurationNs) / 1e9 // calls
	if purpose == PurposeConfirm || whole <= 0 {
		return 1
	}
	return min(1, max(shortPart, float64(h.Limit.callsNeeded())/whole))
}

// doublings are how many are reckoned with as long as no rate has failed: from 1000 calls per second they lead to 128
// 000.
const doublings = 7

// left is how long the search will take from here on, with the load that is about to be made, if no load contradicts
// another.
func (h *capacitySearch) left(rate float64, purpose string) time.Duration {
	whole := time.Duration(h.Setup.DurationNs + h.Setup.WarmUpNs)
	quick := time.Duration(float64(whole) * h.part(rate, PurposeSearch))
	majority := h.Confirm/2 + 1
	half := time.Duration(majority) * quick
	switch purpose {
	case PurposeHalf:
		return max(quick, half-time.Duration(h.trialsAt(rate, purpose))*quick)
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
	// Half of the halvings fail, and are tried twice.
	searching += 1.5 * max(0, math.Ceil(math.Log2(math.Log(to/from)/math.Log(1+h.precision))))
	return time.Duration(searching*float64(quick)) + time.Duration(2*majority)*whole + half
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
