package host

import "slowpath/internal/recording"

// states turns readings of a thread into spans of its states. It is a pure function of the readings: no clock, no
// files.
//
// Between two readings the kernel says exactly for how long the thread ran, and for how long it had waited when it was
// given a CPU. When that was between them is not known, so that the ends of a span are exact to about half the time
// between two readings.
type states struct {
	tid  int
	emit func(stateSpan)

	prev reading
	have bool // prev was read

	ranFrom       int64    // time of the reading before the last sign that the thread ran
	ranTo         int64    // time of the reading with that sign
	notWaiting    int64    // time of the last reading in another state than R
	stillReadings int      // readings since then in state R without a sign of running
	waitEnd       int64    // end of the last wait
	quota         cpuLimit // that throttled the thread in its last wait; no path when none did
	ledger        []throttle

	queue, throttled, frozen, blocked merger
	busy                              busyRun
}

// throttle is an increase of throttled time, seen at a reading.
type throttle struct {
	at     int64
	ns     int64
	cgroup string
}

// newStates makes the state machine for readings that come about every period nanoseconds.
func newStates(tid int, period int64, emit func(stateSpan)) *states {
	s := &states{tid: tid, emit: emit}
	s.queue = merger{gap: period * 3 / 2, emit: s.pass}
	s.throttled = merger{gap: period / 4, emit: s.pass}
	s.frozen = merger{gap: period * 3 / 2, emit: s.pass}
	s.blocked = merger{gap: period * 5 / 2, emit: s.pass}
	s.busy.emit = s.pass
	return s
}

func (s *states) pass(x stateSpan) {
	x.detail.TID, x.detail.Share = s.tid, x.share()
	s.emit(x)
}

// step is what changed between two readings.
type step struct {
	prev, cur *reading
	dt        int64 // length
	ran       int64 // on a CPU, as far as the kernel has accounted it
	waited    int64 // waits for a CPU that ended
	arrivals  int64 // times that it was given a CPU
}

// add takes the next reading.
func (s *states) add(t reading) {
	if !s.have || t.at <= s.prev.at || t.runNs < s.prev.runNs || t.delayNs < s.prev.delayNs {
		s.restart(t)
		return
	}
	p := step{
		prev: &s.prev, cur: &t, dt: t.at - s.prev.at, ran: t.runNs - s.prev.runNs,
		waited: t.delayNs - s.prev.delayNs, arrivals: t.arrivals - s.prev.arrivals,
	}
	s.noteThrottles(&p)
	s.addFrozen(&p)
	s.addBlocked(&p)
	waitBegin, waitEnd := s.addWait(&p)
	s.busy.add(&p, waitBegin, waitEnd)
	s.advance(&p)
	for _, m := range []*merger{&s.queue, &s.throttled, &s.frozen, &s.blocked} {
		m.until(t.at)
	}
	s.prev = t
}

// restart begins at a reading: the first one, or the first after the clock or the counters went back.
func (s *states) restart(t reading) {
	s.flushAll()
	s.prev, s.have = t, true
	s.ranFrom, s.ranTo, s.notWaiting, s.waitEnd, s.stillReadings = t.at, t.at, t.at, t.at, 0
	s.ledger = s.ledger[:0]
	for _, m := range []*merger{&s.queue, &s.throttled, &s.frozen, &s.blocked} {
		m.to = 0
	}
}

func (s *states) advance(p *step) {
	if p.ran > 0 || p.arrivals > 0 {
		s.ranFrom, s.ranTo, s.stillReadings = p.prev.at, p.cur.at, 0
		s.ledger = s.ledger[:0]
	} else if p.cur.state == 'R' {
		s.stillReadings++
	}
	if p.cur.state != 'R' {
		s.notWaiting, s.stillReadings = p.cur.at, 0
	}
}

// noteThrottles writes the growth of throttled time into the ledger. The kernel counts a throttled period when it ends,
// so it belongs to the wait that ends with it or after it; one that ends while the thread sleeps belongs to other
// threads.
func (s *states) noteThrottles(p *step) {
	if p.cur.levels == nil || p.cur.levels != p.prev.levels {
		return
	}
	for i, limit := range p.cur.levels.limits {
		if d := p.cur.throttledNs[i] - p.prev.throttledNs[i]; d > 0 {
			s.ledger = append(s.ledger, throttle{at: p.cur.at, ns: d, cgroup: limit.Path})
		}
	}
	if len(s.ledger) > 1024 {
		s.ledger = append(s.ledger[:0], s.ledger[512:]...)
	}
}

// throttledSince sums the throttled time counted after a time. It can be more than the thread waited, since it is a sum
// over CPUs.
func (s *states) throttledSince(begin int64) (ns, last int64, cgroup string) {
	most := int64(0)
	for _, t := range s.ledger {
		if t.at <= begin {
			continue
		}
		ns, last = ns+t.ns, t.at
		if t.ns > most {
			most, cgroup = t.ns, t.cgroup
		}
	}
	return ns, last, cgroup
}

// addWait adds a wait that ended in this step and says where it was; begin and end are the same when there was none.
func (s *states) addWait(p *step) (begin, end int64) {
	waited := p.waited
	if p.ran == 0 && p.arrivals == 0 {
		return p.cur.at, p.cur.at
	}
	// Where delay_ns does not hold throttled time, the state R without a run does.
	if stillFor := p.cur.at - min(p.ran, p.dt) - max(s.ranFrom, s.notWaiting); s.stillReadings > 0 &&
		waited < stillFor/2 {
		if ns, _, _ := s.throttledSince(s.ranFrom); ns >= minSpanNs && waited < ns/2 {
			waited = min(stillFor, ns)
		}
	}
	if waited < minWaitNs || (p.arrivals > 1 && waited < p.dt/5) {
		return p.cur.at, p.cur.at
	}
	if p.arrivals > 1 && waited <= p.dt {
		s.addSpread(p, waited)
		return p.prev.at, p.cur.at
	}
	begin, end = s.placeWait(p, waited)
	s.splitWait(p, begin, end)
	return begin, end
}

// placeWait puts one wait of known length where it can have been: it ended in this step, before the thread ran, and it
// began neither before the last run nor before the last reading in another state.
func (s *states) placeWait(p *step, waited int64) (begin, end int64) {
	latest := p.cur.at - waited
	if waited >= p.dt {
		latest -= min(p.ran, p.dt) // it waited at the reading before, so all of the run came after
	}
	earliest := max(p.prev.at-waited, s.ranFrom, s.waitEnd)
	if s.notWaiting < p.cur.at {
		earliest = max(earliest, s.notWaiting)
	}
	if waited >= p.dt && s.ranTo < latest && s.notWaiting <= s.ranTo {
		latest = max(earliest, s.ranTo)
	}
	begin = max(latest, s.ranFrom)
	if earliest < latest {
		begin = earliest + (latest-earliest)/2
	}
	s.waitEnd = begin + waited
	return begin, s.waitEnd
}

// splitWait divides a wait into throttled and run-queue time.
func (s *states) splitWait(p *step, begin, end int64) {
	ns, last, cgroup := s.throttledSince(begin)
	ns = min(ns, end-begin)
	if ns < (end-begin)/20 {
		ns = 0
	}
	s.quota = cpuLimit{}
	if ns > (end-begin)/2 {
		s.quota = p.cur.levels.limit(cgroup)
	}
	from, to := begin, begin+ns
	if last == p.cur.at {
		from, to = end-ns, end // it ran as soon as the quota was renewed
	}
	s.throttled.add(stateSpan{
		kind: recording.KindThrottled, from: from, to: to, ns: ns,
		detail: recording.ThreadDetail{Cgroup: cgroup},
	})
	for _, q := range [][2]int64{{begin, from}, {to, end}} {
		s.queue.add(stateSpan{kind: recording.KindRunQueue, from: q[0], to: q[1], ns: q[1] - q[0]})
	}
}

// addSpread adds several waits within one step, whose places are not known.
func (s *states) addSpread(p *step, waited int64) {
	ns, _, cgroup := s.throttledSince(p.prev.at)
	ns = min(ns, waited)
	s.throttled.add(stateSpan{
		kind: recording.KindThrottled, from: p.prev.at, to: p.cur.at, ns: ns,
		detail: recording.ThreadDetail{Cgroup: cgroup},
	})
	s.queue.add(stateSpan{kind: recording.KindRunQueue, from: p.prev.at, to: p.cur.at, ns: waited - ns})
}

// waiting says that the thread waits for a CPU since the last reading, so that more readings would show for how long
// and why.
func (s *states) waiting() bool {
	return s.have && s.stillReadings > 1 && s.prev.at-max(s.ranTo, s.notWaiting) > timerTickNs
}

// quotaPeriods is for how many periods a quota can keep a thread waiting: the rest of one, and another where it used
// all of the next one's quota in advance.
const quotaPeriods = 2

// flush ends the watch: what is open is emitted. A wait that has not ended is known by the state alone. It counts as
// throttled if the last one did, unless it is longer than a quota makes it.
func (s *states) flush() {
	if s.waiting() {
		x := stateSpan{kind: recording.KindRunQueue, from: max(s.ranTo, s.notWaiting), to: s.prev.at}
		x.ns = x.to - x.from
		if x.ns <= quotaPeriods*s.quota.PeriodUs*1000 {
			x.kind, x.detail.Cgroup = recording.KindThrottled, s.quota.Path
			s.throttled.add(x)
		} else {
			s.queue.add(x)
		}
		s.busy.cut(x.from)
	}
	s.flushAll()
}

func (s *states) flushAll() {
	for _, m := range []*merger{&s.queue, &s.throttled, &s.frozen, &s.blocked} {
		m.flush()
	}
	s.busy.flush()
}
