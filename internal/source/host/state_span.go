package host

import "slowpath/internal/recording"

const (
	minSpanNs = 2_000_000  // shorter spans are not events: their sums are in the counters
	minWaitNs = 1_000_000  // shorter waits are not part of a span
	minBusyNs = 10_000_000 // busy is meant as "without a pause"
	busyShare = 0.9
	maxSpanNs = 10_000_000_000 // longer ones are cut, so that a live view sees them
	// spans with a small share are cut sooner, so that the share holds for each part of them
	maxMixedNs = 100_000_000
	// timerTickNs bounds how late run_ns shows that a thread runs: it grows at the timer tick, 10 ms at HZ=100.
	timerTickNs = 10_000_000
)

// stateSpan is a time in which a thread was in one state for ns out of [from, to).
type stateSpan struct {
	kind     string
	from, to int64
	ns       int64
	detail   recording.ThreadDetail
}

func (s *stateSpan) share() float64 {
	if s.to <= s.from {
		return 0
	}
	return min(1, float64(s.ns)/float64(s.to-s.from))
}

// same says that two spans may be one: same state, same place.
func (s *stateSpan) same(o *stateSpan) bool {
	return s.kind == o.kind && s.detail.Cgroup == o.detail.Cgroup && s.detail.Syscall == o.detail.Syscall &&
		s.detail.Wchan == o.detail.Wchan
}

// merger joins spans of one state that are at most gap apart, and emits those that are long enough.
type merger struct {
	gap  int64
	emit func(stateSpan)
	open stateSpan
	any  bool
	to   int64 // end of all that was added
}

// add adds a span. What overlaps the one before, because the place of one of them was estimated, is cut off.
func (m *merger) add(s stateSpan) {
	s.from = max(s.from, m.to)
	s.ns = min(s.ns, s.to-s.from)
	if s.to <= s.from || s.ns <= 0 {
		return
	}
	m.to = s.to
	if m.any && m.open.same(&s) && s.from-m.open.to <= m.gap && m.mayGrow(s.to) {
		m.open.to = max(m.open.to, s.to)
		m.open.ns += s.ns
		return
	}
	m.flush()
	m.open, m.any = s, true
}

func (m *merger) mayGrow(to int64) bool {
	length := to - m.open.from
	return length <= maxMixedNs || (length <= maxSpanNs && m.open.share() >= busyShare)
}

// flush emits the open span.
func (m *merger) flush() {
	if m.any && m.open.ns >= minSpanNs {
		m.emit(m.open)
	}
	m.any = false
}

// until flushes when nothing that begins at now or later can join.
func (m *merger) until(now int64) {
	if m.any && now-m.open.to > m.gap {
		m.flush()
	}
}
