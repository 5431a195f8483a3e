//go:build linux

package engine

import "time"

// drain waits for the calls in flight, and counts those without a reply by their age.
func (w *worker) drain() {
	before := w.tally.Calls()
	if w.arrivals != nil {
		w.countUnsent()
	}
	if w.replayer != nil {
		w.countUnsentOfLog()
	}
	w.remaining = 0
	if w.routing != nil {
		w.countUnsentRouted()
	}
	until := w.now + int64(w.r.Drain)
	for w.inFlight > 0 && w.now < until {
		next := until
		if w.routing != nil {
			next = w.nextRouted(until)
		}
		n, err := w.wait(time.Duration(next - w.now))
		if err != nil {
			break
		}
		w.now = w.r.Clock.Now()
		for i := range n {
			w.handle(&w.events[i])
		}
		if w.routing != nil {
			w.dispatchRouted()
		}
	}
	w.countAllUnanswered()
	w.tally.Drained, w.tally.Unsent, w.tally.Last = w.tally.Calls()-before, w.unsent, true
	if w.index == 0 && w.r.subscribers != nil {
		w.r.otherWorkers.Wait()
		w.r.subscribers.waitForMessages()
	}
	w.passTally()
}

// countUnsent counts the calls that were due before the end and could not be sent.
func (w *worker) countUnsent() {
	for w.hasDue && w.due < w.ended && w.remaining != 0 { // after the last of Options.Requests none is due
		w.unsent++
		w.tally.age(&w.tally.AgeFromIntended, w.ended-w.due)
		w.advance()
	}
	w.hasDue = false
}

// countAllUnanswered counts the calls that have no reply.
func (w *worker) countAllUnanswered() {
	for _, c := range w.conns {
		if c.dead {
			continue
		}
		for i := range c.count {
			w.countUnanswered(c.index, &c.inflight[(c.head+i)&(len(c.inflight)-1)])
		}
	}
	if w.routing != nil {
		w.countUnansweredRouted()
	}
}

// countUnanswered counts a call that has no reply.
func (w *worker) countUnanswered(conn int, f *inflightCall) {
	w.tally.age(&w.tally.AgeFromSend, w.now-f.sent)
	if w.now-f.intended >= w.r.SlowFrom.Load() {
		w.r.OnSlow(Slow{
			Worker: w.index, Conn: conn, Op: f.op, Calls: 1, IntendedNs: f.intended, SentNs: f.sent,
			EndNs: w.now, Unanswered: true,
		})
	}
	if w.r.TwoTimes() {
		w.tally.age(&w.tally.AgeFromIntended, w.now-f.intended)
	}
}
