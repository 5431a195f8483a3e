package experiment

import (
	"context"
	"fmt"
	"math"

	"slowpath/internal/format"

	"slowpath/internal/load/bottleneck"
)

// confirm makes new loads at both ends of the bracket, alternately. moved: an end was not confirmed, so that the search
// goes on.
func (h *capacitySearch) confirm(ctx context.Context) (moved bool, err error) {
	low, high := h.low, h.high
	for range h.Confirm {
		for _, rate := range []float64{low, high} {
			if math.IsInf(rate, 1) || h.outcomeAt(rate, PurposeConfirm) != "" {
				continue
			}
			if _, err := h.trial(ctx, rate, PurposeConfirm); err != nil {
				return false, err
			}
		}
	}
	if outcome := h.outcomeAt(low, PurposeConfirm); outcome != Holds {
		h.lower(low, outcome)
		return true, nil
	}
	if !math.IsInf(high, 1) && h.outcomeAt(high, PurposeConfirm) == Holds {
		h.raise(high)
		return true, nil
	}
	h.confirmed, err = h.holdsAtHalf(ctx)
	return false, err
}

// holdsAtHalf tries half of the rate that holds. A search that goes down until a rate holds finds one even where chance
// decides; that the half holds too by chance is unlikely.
func (h *capacitySearch) holdsAtHalf(ctx context.Context) (bool, error) {
	half := max(h.low/2, h.c.LowestPerSecond)
	if half >= h.low/(1+h.precision) {
		return true, nil // lower rates cannot be judged
	}
	for h.outcomeAt(half, PurposeHalf) == "" {
		if _, err := h.trial(ctx, half, PurposeHalf); err != nil {
			return false, err
		}
	}
	return h.outcomeAt(half, PurposeHalf) == Holds, nil
}

// outcomeAt is the outcome of the majority of the loads with this purpose at a rate, empty while further loads can
// change it, and Untested without a majority.
func (h *capacitySearch) outcomeAt(rate float64, purpose string) string {
	n := map[string]int{}
	done := 0
	for _, t := range h.c.Trials {
		if t.PerSecond == rate && t.Purpose == purpose {
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

// lower moves the bracket below a lower end that was not confirmed: to the next rate that has held, or to an open end.
func (h *capacitySearch) lower(rate float64, outcome string) {
	h.high, h.above[rate] = rate, outcome
	h.low = 0
	for _, t := range h.c.Trials {
		if t.Outcome == Holds && t.PerSecond < rate && h.outcomeAt(t.PerSecond, PurposeConfirm) != Fails &&
			h.outcomeAt(t.PerSecond, PurposeConfirm) != Untested {
			h.low = max(h.low, t.PerSecond)
		}
	}
}

// raise moves the bracket above an upper end that held: to the next rate that did not, or to an open end.
func (h *capacitySearch) raise(rate float64) {
	h.low, h.high = rate, math.Inf(1)
	delete(h.above, rate)
	for r := range h.above {
		if r > rate {
			h.high = min(h.high, r)
		}
	}
}

// conclude fills in the result.
func (h *capacitySearch) conclude() {
	c := h.c
	c.Precision = h.precision
	if h.low > 0 {
		c.Holds = h.end(h.low, Holds)
	}
	if !math.IsInf(h.high, 1) {
		c.Fails = h.end(h.high, h.above[h.high])
	}
	c.Contradicting = c.contradicting()
	c.Confirmed = h.confirmed && !c.contradicted()
	c.Summary = c.sentence()
	h.notes()
}

// contradictionFactor is how far a rate must be outside the bracket to contradict it.
const contradictionFactor = 1.2

// contradicting counts the loads whose outcome contradicts the bracket.
func (c *Capacity) contradicting() (n int) {
	for i, t := range c.Trials {
		switch {
		case t.Purpose == PurposeSearch && i+1 < len(c.Trials) && c.Trials[i+1].PerSecond == t.PerSecond &&
			c.Trials[i+1].Purpose == PurposeSearch:
			// a short load that failed and was tried again: the second one counts
		case t.Outcome == Holds && c.Fails != nil && c.Fails.Outcome == Fails &&
			t.PerSecond > c.Fails.PerSecond*contradictionFactor,
			t.Outcome == Fails && c.Holds != nil && t.PerSecond < c.Holds.PerSecond/contradictionFactor:
			n++
		}
	}
	return n
}

// contradicted: more loads contradict the bracket than occasional stalls explain, one plus 5 %.
func (c *Capacity) contradicted() bool { return c.Contradicting > 1+len(c.Trials)/20 }

// halfFails: most loads at half the rate failed.
func (c *Capacity) halfFails() bool {
	broken, done := 0, 0
	for _, t := range c.Trials {
		if t.Purpose == PurposeHalf {
			done++
			if t.Outcome != Holds {
				broken++
			}
		}
	}
	return 2*broken > done
}

// end is an end of the bracket, with its confirmation runs.
func (h *capacitySearch) end(rate float64, outcome string) *End {
	e := &End{PerSecond: rate, Outcome: outcome}
	if agreed := h.outcomeAt(rate, PurposeConfirm); agreed != "" {
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
		return "No load was finished."
	case c.Holds == nil && c.Fails.Outcome == Untested:
		return fmt.Sprintf("No rate could be tested: even at %s/s %s.", format.Rounded(c.Fails.PerSecond), c.Fails.Why)
	case c.Holds == nil:
		return fmt.Sprintf("No rate from %s/s holds %s: even there %s.", format.Rounded(c.Fails.PerSecond), c.Limit,
			c.Fails.Why)
	}
	held := ""
	if !c.Confirmed {
		held = "Not confirmed: "
	}
	held += fmt.Sprintf("%s holds at %s/s%s", c.Limit, format.Rounded(c.Holds.PerSecond), c.Holds.counted())
	switch {
	case c.Fails == nil:
		return held + "; no higher rate was tried that fails."
	case c.Fails.Outcome == Untested:
		return fmt.Sprintf("%s; %s/s could not be tested%s: %s. The server may do more.", held,
			format.Rounded(c.Fails.PerSecond), c.Fails.counted(), c.Fails.Why)
	}
	return fmt.Sprintf("%s, and fails at %s/s%s: %s.", held, format.Rounded(c.Fails.PerSecond), c.Fails.counted(),
		c.Fails.Why)
}

func (e *End) counted() string {
	if e.Of == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d runs)", e.Agree, e.Of)
}

func (h *capacitySearch) notes() {
	c := h.c
	note := func(sentence string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(sentence, args...)) }
	switch {
	case c.Interrupted:
		note("The search was ended early.")
	case c.halfFails():
		note("The limit does not hold at half the rate either. Something else than the rate makes calls slow; " +
			"slowpath doctor says what.")
	case c.contradicted():
		note("%d of %d loads held where higher rates should fail, or failed where lower ones should hold. Something "+
			"else than the rate makes calls slow; slowpath doctor says what.", c.Contradicting, len(c.Trials))
	case c.Holds != nil && !c.Confirmed:
		note("The search ended after %d loads, since the loads at one rate do not agree with each other. A longer "+
			"--for makes them steadier.", len(c.Trials))
	case c.Holds == nil && c.Fails != nil:
		note("Rates below %s/s are not tried: a load would have too few calls to judge. If lower rates do not make "+
			"calls faster, the load is not what makes them slow; slowpath doctor says what does.",
			format.Rounded(c.LowestPerSecond))
	}
	if c.Holds != nil && c.Fails != nil && h.precision > h.Precision &&
		c.Fails.PerSecond > c.Holds.PerSecond*(1+h.Precision)*(1+1e-9) {
		note("The ends are %.0f %% apart and not %.3g %%, since loads at closer rates do not agree.",
			100*(c.Fails.PerSecond/c.Holds.PerSecond-1), 100*h.Precision)
	}
	untested, shared := 0, 0
	for _, t := range c.Trials {
		if t.Run.LimitedBy == bottleneck.BySharedCPU {
			shared++
		}
		if t.Outcome == Untested {
			untested++
		}
	}
	if untested > 0 {
		note("In %d of %d loads the generator did not keep its own schedule; they are not counted as failures of the "+
			"server. Use more --threads, or a separate machine.", untested, len(c.Trials))
	}
	if 2*shared > len(c.Trials) {
		note("Server and generator, or others, competed for the same CPUs in %d of %d loads: the rate is that of all "+
			"together.", shared, len(c.Trials))
	}
	if c.Holds == nil {
		return
	}
	if calls := int64(c.Holds.PerSecond * float64(c.DurationNs) / 1e9); calls < h.Limit.callsNeeded() {
		note("A load has %d calls; for ten of them above %s it would need %d: give a longer --for.", calls, c.Limit,
			h.Limit.callsNeeded())
	}
}
