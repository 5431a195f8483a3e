package experiment

import "fmt"

// Outcomes of a load at a rate.
const (
	Holds    = "holds"
	Fails    = "fails"
	Untested = "untested" // the generator did not do what was asked of it: nothing is known of the server
)

// Trial is a load at a rate, and whether it held the limit.
type Trial struct {
	PerSecond float64 `json:"per_second"` // calls that were asked for
	Purpose   string  `json:"purpose"`    // PurposeSearch, PurposeConfirm, PurposeHalf
	Outcome   string  `json:"outcome"`
	Why       string  `json:"why,omitempty"` // what was broken, for people
	Run       Run     `json:"run"`
}

// Purposes of a trial.
const (
	PurposeSearch  = "search"
	PurposeConfirm = "confirm"
	PurposeHalf    = "half" // of the rate that holds: it must hold there, too
)

// unsentShare is the share of the calls that were due by the end of the load and may be unsent: more, and the server does
// not keep up, whatever the latencies of the others. A stall that ends with the load leaves some as well; these count
// into the latencies with their age.
const unsentShare = 0.05

// judge says whether a load held the limit. What the generator did wrong is never taken for a failure of the server;
// that it held a limit nevertheless counts.
func (l Limit) judge(r Run) (outcome, why string) {
	unsent := float64(r.Unsent) / float64(max(1, r.Requests+r.Unsent))
	if unsent > unsentShare {
		why = fmt.Sprintf("%.3g %% of the calls were never sent", unsent*100)
	}
	for _, b := range l {
		text := b.broken(r)
		switch {
		case text == "":
		case b.byGenerator(r):
			return Untested, text + ", and the generator itself sent up to " + brief(quantiles[b.Metric].late(r)) +
				" late"
		case why == "":
			why = text
		default:
			why += ", " + text
		}
	}
	switch {
	case why == "" && r.Requests == 0:
		return Untested, "no call had a reply"
	case why == "":
		return Holds, ""
	case r.GeneratorLimited:
		return Untested, why + ", and the generator was the limit"
	}
	return Fails, why
}
