package account

import "slowpath/internal/recording"

// queue is the kept connection of the probe to one node: its calls go out one after the other, whenever they were due.
type queue struct {
	calls []recording.Call // ordered by their send
	next  int              // of calls, the first that is not in line
	line  []Segment        // what the calls were waiting for that had others behind them, ordered and disjoint
}

// queues are the kept connections by node.
func queues(rec *recording.Recording) map[string]*queue {
	out := map[string]*queue{}
	for _, c := range rec.Calls { // ordered by the time at which they were due, which is the order they are sent in
		if !waitsInTurn(c) {
			continue
		}
		q := out[c.Node]
		if q == nil {
			q = &queue{}
			out[c.Node] = q
		}
		// but for those that had not come back when the watch ended
		if n := len(q.calls); n == 0 || c.StartNs >= q.calls[n-1].EndNs {
			q.calls = append(q.calls, c)
		}
	}
	return out
}

// waitsInTurn reports whether a call waits for the one before it on its connection.
func waitsInTurn(c recording.Call) bool {
	return c.Source == recording.SourceProbe && c.Conn == "kept"
}

// layBehind fills the time in which a call of the probe waited for those before it on its connection with what those
// waited for: their way, their retransmissions, and that the probe came late to their replies.
func (p *painter) layBehind(cv *canvas, c recording.Call) {
	q := p.queues[c.Node]
	if q == nil || !waitsInTurn(c) || c.StartNs <= c.IntendedNs {
		return
	}
	for ; q.next < len(q.calls) && q.calls[q.next].StartNs < c.StartNs; q.next++ {
		if q.next+1 < len(q.calls) && q.calls[q.next+1].IntendedNs < q.calls[q.next].EndNs {
			q.line = append(q.line, p.flight(q.calls[q.next])...)
		}
	}
	cv.weave(q.line, func(g, before Segment) (Segment, bool) { return before, isOpen(g) })
}

// flight is what a call waited for from its send to its reply, as those felt it that waited for it.
func (p *painter) flight(c recording.Call) []Segment {
	c.IntendedNs = c.StartNs
	cv := newCanvas(c.StartNs, c.EndNs)
	p.lay(cv, c)
	var out []Segment
	for _, s := range cv.segments() {
		switch {
		case isOpen(s):
			continue
		case s.Actor == Server && s.State == Exec:
			s.State, s.Culprit = Busy, c.Op+", slowpath itself"
		}
		out = append(out, s)
	}
	return out
}
