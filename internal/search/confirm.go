package search

import (
	"context"
	"fmt"
	"math"
)

// confirm makes new loads at both ends of the bracket, in turns. It tells whether an end moved, so that the search goes on.
func (h *hunt) confirm(ctx context.Context) (moved bool, err error) {
	low, high := h.low, h.high
	for range h.Confirm {
		for _, rate := range []float64{low, high} {
			if math.IsInf(rate, 1) || h.agreed(rate) != "" {
				continue
			}
			if _, err := h.trial(ctx, rate, PurposeConfirm); err != nil {
				return false, err
			}
		}
	}
	if outcome := h.agreed(low); outcome != Holds {
		h.sink(low, outcome)
		return true, nil
	}
	if !math.IsInf(high, 1) && h.agreed(high) == Holds {
		h.rise(high)
		return true, nil
	}
	h.confirmed = true
	return false, nil
}

// agreed is the outcome that most of the confirmation runs at a rate must have by now, empty while more can change it. Where none has most of
// them, it was not shown to hold.
func (h *hunt) agreed(rate float64) string {
	n := map[string]int{}
	done := 0
	for _, t := range h.c.Trials {
		if t.PerSecond == rate && t.Purpose == PurposeConfirm {
			n[t.Outcome]++
			done++
		}
	}
	for _, o := range []string{Holds, Fails, Untested} {
		if 2*n[o] > h.Confirm {
			return o
		}
	}
	if done >= h.Confirm {
		return Untested
	}
	return ""
}

// sink moves the bracket below a lower end that did not hold again, as far as the next one that has held, or by as much as the bracket was wide.
func (h *hunt) sink(rate float64, outcome string) {
	h.high, h.above[rate] = rate, outcome
	h.low = 0
	for _, t := range h.c.Trials {
		if t.Outcome == Holds && t.PerSecond < rate && h.agreed(t.PerSecond) != Fails && h.agreed(t.PerSecond) != Untested {
			h.low = max(h.low, t.PerSecond)
		}
	}
}

// rise moves the bracket above an upper end that held after all, to the next that did not, or to twice the rate.
func (h *hunt) rise(rate float64) {
	h.low, h.high = rate, math.Inf(1)
	delete(h.above, rate)
	for r := range h.above {
		if r > rate {
			h.high = min(h.high, r)
		}
	}
}

// conclude writes down what was found.
func (h *hunt) conclude() {
	c := h.c
	if h.low > 0 {
		c.Holds = h.end(h.low, Holds)
	}
	if !math.IsInf(h.high, 1) {
		c.Fails = h.end(h.high, h.above[h.high])
	}
	c.Confirmed = h.confirmed
	c.Summary = c.sentence()
	h.notes()
}

// end counts the confirmation runs of a rate.
func (h *hunt) end(rate float64, outcome string) *End {
	e := &End{PerSecond: rate, Outcome: outcome}
	if agreed := h.agreed(rate); agreed != "" {
		e.Outcome = agreed
	}
	for _, t := range h.c.Trials {
		if t.PerSecond != rate {
			continue
		}
		if t.Outcome == e.Outcome {
			e.Why = t.Why
		}
		if t.Purpose == PurposeConfirm {
			e.Of++
			if t.Outcome == e.Outcome {
				e.Agree++
			}
		}
	}
	return e
}

func (c *Capacity) sentence() string {
	switch {
	case c.Holds == nil && c.Fails == nil:
		return "Nothing was tried to its end."
	case c.Holds == nil && c.Fails.Outcome == Untested:
		return fmt.Sprintf("No rate could be tested: even at %s/s %s.", thousands(c.Fails.PerSecond), c.Fails.Why)
	case c.Holds == nil:
		return fmt.Sprintf("No rate holds %s: even at %s/s %s.", c.Limit, thousands(c.Fails.PerSecond), c.Fails.Why)
	}
	held := fmt.Sprintf("%s holds at %s/s%s", c.Limit, thousands(c.Holds.PerSecond), c.Holds.counted())
	switch {
	case c.Fails == nil:
		return held + "; no higher rate was tried that fails."
	case c.Fails.Outcome == Untested:
		return fmt.Sprintf("%s; %s/s could not be tested%s: %s. The server may do more.", held, thousands(c.Fails.PerSecond), c.Fails.counted(), c.Fails.Why)
	}
	return fmt.Sprintf("%s, and fails at %s/s%s: %s.", held, thousands(c.Fails.PerSecond), c.Fails.counted(), c.Fails.Why)
}

func (e *End) counted() string {
	if e.Of == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d runs)", e.Agree, e.Of)
}

func (h *hunt) notes() {
	c := h.c
	note := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case c.Interrupted:
		note("The search was ended early.")
	case c.Holds != nil && !c.Confirmed:
		note("Not confirmed: the search ended after %d loads, since the loads at one rate do not agree with each other. A longer --for makes them steadier.", len(c.Trials))
	}
	untested := 0
	for _, t := range c.Trials {
		if t.Outcome == Untested {
			untested++
		}
	}
	if untested > 0 {
		note("In %d of %d loads the generator did not keep its own schedule; they are not counted as failures of the server. Use more --threads, or a machine of its own.", untested, len(c.Trials))
	}
	if c.Holds == nil {
		return
	}
	if calls := int64(c.Holds.PerSecond * float64(c.DurationNs) / 1e9); calls < h.Limit.callsNeeded() {
		note("A load has %d calls; for ten of them beyond %s it would need %d: give a longer --for.", calls, c.Limit, h.Limit.callsNeeded())
	}
}
