package bench

import (
	"maps"
	"slices"
	"time"
)

// common is the time that all parts have in common.
func (m *merger) common() (from, to time.Time) {
	from, to = m.parts[0].Result.Start, endOf(m.parts[0].Result)
	for _, p := range m.parts[1:] {
		if p.Result.Start.After(from) {
			from = p.Result.Start
		}
		if e := endOf(p.Result); e.Before(to) {
			to = e
		}
	}
	return from, to
}

// commonRate is the rate of all parts together in their common time. A second that is partly in it counts in
// proportion.
func (m *merger) commonRate() float64 {
	from, to := m.common()
	window := to.Sub(from).Seconds()
	if window <= 0 {
		return 0
	}
	calls := 0.0
	for _, p := range m.parts {
		begin, end := from.Sub(p.Result.Start).Seconds(), to.Sub(p.Result.Start).Seconds()
		for _, s := range p.Result.Series {
			at := float64(s.Second)
			if inside := min(end, at+s.Seconds) - max(begin, at); inside > 0 && s.Seconds > 0 {
				calls += float64(s.Requests) * min(1, inside/s.Seconds)
			}
		}
	}
	return calls / window
}

// series adds up the seconds, counted from the first start. Percentiles of a second are the highest of the parts':
// those of all their calls are not above it.
func (m *merger) series() []Second {
	seconds := map[int]*Second{}
	for _, p := range m.parts {
		shift := int(p.Result.Start.Sub(m.out.Start).Seconds() + 0.5)
		for _, s := range p.Result.Series {
			n := s.Second + shift
			t := seconds[n]
			if t == nil {
				t = &Second{Second: n}
				seconds[n] = t
			}
			t.add(s)
		}
	}
	var out []Second
	for _, n := range slices.Sorted(maps.Keys(seconds)) {
		out = append(out, *seconds[n])
	}
	return out
}

func (t *Second) add(s Second) {
	t.Seconds = max(t.Seconds, s.Seconds)
	t.Requests += s.Requests
	t.Errors += s.Errors
	t.Misses += s.Misses
	t.Retried += s.Retried
	t.P50Ns, t.P99Ns, t.P999Ns, t.MaxNs = max(t.P50Ns, s.P50Ns), max(t.P99Ns, s.P99Ns), max(t.P999Ns, s.P999Ns),
		max(t.MaxNs, s.MaxNs)
	t.ServiceP50Ns, t.ServiceP99Ns, t.ServiceMaxNs = max(t.ServiceP50Ns, s.ServiceP50Ns), max(t.ServiceP99Ns,
		s.ServiceP99Ns), max(t.ServiceMaxNs, s.ServiceMaxNs)
	t.LateP99Ns = max(t.LateP99Ns, s.LateP99Ns)
	t.InFlight += s.InFlight
	t.Connected += s.Connected
	t.Reconnected += s.Reconnected
	t.BytesOut += s.BytesOut
	t.BytesIn += s.BytesIn
	t.WorkersCPUNs += s.WorkersCPUNs
	t.WorkersRunQueueNs += s.WorkersRunQueueNs
}
