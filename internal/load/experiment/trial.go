package experiment

import (
	"fmt"

	"slowpath/internal/format"
)

// Outcomes of a load at a rate.
const (
	Holds    = "holds"
	Fails    = "fails"
	Untested = "untested" // the generator did not keep its schedule: nothing is known about the server
)

// Trial is a load at a rate, and whether it held the limit.
type Trial struct {
	PerSecond float64 `json:"per_second"` // calls that were asked for
	Purpose   string  `json:"purpose"`    // PurposeSearch, PurposeConfirm, PurposeHalf
	Outcome   string  `json:"outcome"`
	Why       string  `json:"why,omitempty"` // which bound was broken
	Run       Run     `json:"run"`
}

// Purposes of a trial.
const (
	PurposeSearch  = "search"
	PurposeConfirm = "confirm"
	PurposeHalf    = "half" // of the rate that holds: it must hold there, too
)

// unsentShare is the share of the due calls that may be unsent at the end of the load. With more the server does not
// keep up, whatever the latencies of the others. A stall at the end of the load also leaves some, which count in the
// latencies with their age.
const unsentShare = 0.05

// judge says whether a load held the limit. What the generator broke is never a failure of the server; a limit that
// held nevertheless counts.
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
			return Untested, text + ", and the generator itself sent up to " +
				format.Brief(quantiles[b.Metric].late(r)) +
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
		return Untested, why + ", and the generator was the bottleneck"
	}
	return Fails, why
}
