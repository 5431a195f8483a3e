package connection

import (
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// NeverAnswered are the connections on which a call waited for a reply that would never have come, until its caller
// gave up: the server answered others meanwhile, and hardly any call is answered shortly before the timeout. Where the
// server is merely late, other calls wait as long as one that was given up, and as many are answered just before the
// timeout as are not: no threshold within a distribution leaves nothing on one side.
func NeverAnswered(n *facts.Node, callers []*caller.Caller) map[*caller.Conn]bool {
	given, age := closedWaiting(callers)
	if len(given) < MinRedials {
		return nil
	}
	// Calls that meet a server which stands still for a time S wait evenly between 0 and S: with a timeout T, (T/2) /
	// (S-T) of those given up are answered between half of the timeout and the timeout: a part for every S below 6 T.
	if late, seen := AnsweredBeforeTimeout(n, age); !seen || late > degree.Part*float64(len(given)) {
		return nil
	}
	others := answeredRequests(n, callers)
	proven := 0
	for _, k := range given {
		if answeredMeanwhile(others, k, k.CloseNs-k.IdleNs, k.CloseNs) {
			proven++
		}
	}
	if float64(proven) < degree.Most*float64(len(given)) {
		return nil // most of them waited for a server that answered nobody
	}
	out := map[*caller.Conn]bool{}
	for _, k := range given {
		out[k] = true // the same timeout, the same path: for some nobody else called
	}
	return out
}

// closedWaiting are the connections that were closed with a call waiting whose command does not block by itself, and
// the median wait in nanoseconds.
func closedWaiting(callers []*caller.Caller) (list []*caller.Conn, ageNs int64) {
	for _, c := range callers {
		for _, k := range c.ConnsWhere((*caller.Conn).ClosedWaiting) {
			if !facts.LongWaitCommands[k.UnansweredOp] {
				list = append(list, k)
			}
		}
	}
	return list, caller.PercentilesOf(list, func(k *caller.Conn) int64 { return k.IdleNs }).Median
}

// AnsweredBeforeTimeout is how many calls were answered between half of a timeout and the timeout; seen is false where
// no calls were counted.
func AnsweredBeforeTimeout(n *facts.Node, timeoutNs int64) (calls float64, seen bool) {
	for _, end := range []string{recording.Client, recording.Server} { // the other end has the same calls
		var count, all int64
		for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
			side, op, _ := strings.Cut(h.Op, " ")
			if h.Node != n.Address || side != end || facts.LongWaitCommands[op] {
				continue
			}
			all += h.Sum.TotalCount()
			for _, b := range h.Sum.Distribution() {
				if b.From >= timeoutNs/2 && b.From < timeoutNs {
					count += b.Count
				}
			}
		}
		if all > 0 {
			return float64(count), true
		}
	}
	return 0, false
}
