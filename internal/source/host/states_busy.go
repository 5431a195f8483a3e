package host

import "slowpath/internal/recording"

// busyRun follows a thread that stays on the CPU. A thread in state R that was not given a CPU since the last reading
// either kept it or waits for it; the run time that the kernel counts next, or the end of the wait, shows which.
type busyRun struct {
	emit func(stateSpan)

	on      bool
	from    int64 // begin
	runFrom int64 // run_ns at the begin
	to      int64 // end of what is certain
	runTo   int64
	open    bool // still running at to
}

// add takes a step in which a wait for a CPU ended, or none (begin == end).
func (b *busyRun) add(p *step, begin, end int64) {
	switch {
	case begin < end:
		b.cut(begin)
		b.flush()
		if p.arrivals == 1 && p.cur.state == 'R' && end < p.cur.at {
			b.on, b.from, b.to, b.open = true, end, p.cur.at, true
			b.runFrom, b.runTo = p.cur.runNs-min(p.ran, p.cur.at-end), p.cur.runNs
		}
	case p.cur.state == 'R' && p.arrivals == 0 && p.ran > 0:
		b.extend(p, true)
	case p.cur.state == 'R' && p.arrivals == 0:
		// Not counted yet: the next step shows it.
	case p.cur.state == 'R' && p.arrivals <= 2 && b.dense(p):
		b.extend(p, true)
	case p.ran >= p.dt*9/10:
		b.extend(p, p.cur.state == 'R')
	default:
		b.end(p)
		b.flush()
	}
}

// dense says whether the run with this step may still be without a pause, given that the kernel has not counted the
// time since its last timer tick yet: a short preemption does not end it.
func (b *busyRun) dense(p *step) bool {
	from, run := p.prev.at, p.prev.runNs
	if b.on {
		from, run = b.from, b.runFrom
	}
	return float64(p.cur.runNs-run+timerTickNs/2) >= busyShare*float64(p.cur.at-from)
}

func (b *busyRun) extend(p *step, open bool) {
	if !b.on {
		b.on, b.from, b.runFrom = true, p.prev.at, p.prev.runNs
	}
	b.to, b.runTo, b.open = p.cur.at, p.cur.runNs, open
	if b.to-b.from > maxSpanNs {
		b.flush()
	}
}

// end adds the run at the beginning of the step in which the thread went to sleep.
func (b *busyRun) end(p *step) {
	if !b.on {
		return
	}
	end := b.from + p.cur.runNs - b.runFrom
	if end > b.to && end <= p.cur.at && p.arrivals <= 1 {
		b.to, b.runTo = end, p.cur.runNs
	}
	b.open = false
}

// cut ends the run at a time at which a wait turned out to have begun.
func (b *busyRun) cut(at int64) {
	if b.on && at < b.to {
		b.to, b.open = at, false
	}
}

// flush emits a run that was long and dense enough.
func (b *busyRun) flush() {
	if !b.on {
		return
	}
	b.on = false
	length, ns := b.to-b.from, b.runTo-b.runFrom
	if b.open {
		ns += timerTickNs / 2 // what the next timer tick would have counted
	}
	ns = min(ns, length)
	if length >= minBusyNs && float64(ns) >= busyShare*float64(length) {
		b.emit(stateSpan{kind: recording.KindBusy, from: b.from, to: b.to, ns: ns})
	}
}
