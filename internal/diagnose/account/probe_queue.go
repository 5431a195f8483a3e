package account

import "slowpath/internal/recording"

// probeQueue is the kept connection of the probe to one node: its calls go out one after the other, whenever they were
// due.
type probeQueue struct {
	calls []recording.Call // ordered by their send
	next  int              // of calls, the first whose waits are not known yet
	waits []Segment        // what calls waited for that had others queued behind them, ordered and disjoint
}

// probeQueues are the kept connections by node.
func probeQueues(rec *recording.Recording) map[string]*probeQueue {
	out := map[string]*probeQueue{}
	for _, c := range rec.Calls { // ordered by when they were due, which is the order they are sent in
		if !mayQueue(c) {
			continue
		}
		q := out[c.Node]
		if q == nil {
			q = &probeQueue{}
			out[c.Node] = q
		}
		// Calls without a reply at the end of the watch overlap: the first of them is in the queue.
		if n := len(q.calls); n == 0 || c.StartNs >= q.calls[n-1].EndNs {
			q.calls = append(q.calls, c)
		}
	}
	return out
}

// mayQueue reports whether a call waits for the one before it on its connection.
func mayQueue(c recording.Call) bool {
	return c.Source == recording.SourceProbe && c.Conn == "kept"
}

// before is what the calls sent before c waited for, those that had others queued behind them. Calls come in the order
// in which they were due.
func (q *probeQueue) before(c recording.Call, waitsOf func(recording.Call) []Segment) []Segment {
	for ; q.next < len(q.calls) && q.calls[q.next].StartNs < c.StartNs; q.next++ {
		if q.next+1 < len(q.calls) && q.calls[q.next+1].IntendedNs < q.calls[q.next].EndNs {
			q.waits = append(q.waits, waitsOf(q.calls[q.next])...)
		}
	}
	return q.waits
}
