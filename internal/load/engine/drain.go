//go:build linux

package engine

import "time"

// drain waits for the calls in flight, and counts those that do not come back with their age.
func (w *worker) drain() {
	before := w.tally.Calls()
	if w.arrivals != nil {
		w.leave()
	}
	if w.player != nil {
		w.leaveLog()
	}
	w.left = 0
	if w.routing != nil {
		w.leaveRouted()
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
	w.abandon()
	w.tally.Drained, w.tally.Unsent, w.tally.Last = w.tally.Calls()-before, w.unsent, true
	if w.index == 0 && w.r.subscribers != nil {
		w.r.others.Wait()
		w.r.subscribers.settle()
	}
	w.handOver()
}

// leave counts what the schedule had due before the end and nobody could send.
func (w *worker) leave() {
	for w.more && w.due < w.ended && w.left != 0 { // after the last of its calls a load has none that it could not send
		w.unsent++
		w.tally.age(&w.tally.AgeFromIntended, w.ended-w.due)
		w.advance()
	}
	w.more = false
}

// abandon counts the calls that have no reply yet.
func (w *worker) abandon() {
	for _, c := range w.conns {
		if c.dead {
			continue
		}
		for i := range c.count {
			w.outlived(c.index, &c.flights[(c.head+i)&(len(c.flights)-1)])
		}
	}
	if w.routing != nil {
		w.abandonRouted()
	}
}

// outlived counts a call that has no reply yet.
func (w *worker) outlived(seat int, f *flight) {
	w.tally.age(&w.tally.AgeFromSend, w.now-f.sent)
	if w.now-f.intended >= w.r.SlowFrom.Load() {
		w.r.OnSlow(Slow{
			Worker: w.index, Seat: seat, Op: f.op, Calls: 1, IntendedNs: f.intended, SentNs: f.sent,
			EndNs: w.now, Unanswered: true,
		})
	}
	if w.r.TwoTimes() {
		w.tally.age(&w.tally.AgeFromIntended, w.now-f.intended)
	}
}
