package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// PoolRedials are the redials of pools: of callers that closed connections between calls, without those that a garbage
// collector closed.
func PoolRedials(n *facts.Node, callers []*caller.Caller) []Redial {
	swept := map[*caller.Conn]bool{}
	for _, l := range Leaks(n, callers) {
		for _, s := range l.GCSweeps {
			for _, k := range s.Conns {
				swept[k] = true
			}
		}
	}
	return Redials(callers, func(k *caller.Conn) bool { return k.ClosedIdle() && !swept[k] })
}

// PoolCausesRedials reports whether a caller opens connections again and again for a reason that lies in its pool.
func PoolCausesRedials(n *facts.Node, c *caller.Caller) bool {
	if len(LifetimesOf(n, []*caller.Caller{c})) > 0 {
		return true
	}
	for _, r := range PoolRedials(n, []*caller.Caller{c}) {
		if r.ByIdleLimit() || r.PoolOverflows() {
			return true
		}
	}
	return len(Redials([]*caller.Caller{c}, (*caller.Conn).ClosedWaiting)) > 0
}

// ByIdleLimit reports whether the connections were closed after the same time without a call, and were missed: where
// most of the new ones are opened while another is idle, they are not of one pool. A job that closes its connection
// when it is done does so sooner than any limit (MinIdleNs).
func (r Redial) ByIdleLimit() bool {
	return r.idleTimes().Median >= caller.MinIdleNs && r.afterSameIdleTime() && r.SpareShare() <= degree.Most
}

// afterSameIdleTime: a limit closes nothing earlier. Where something else ends connections now and then, 10 % of them
// end within a sixth of the median (exponential times).
func (r Redial) afterSameIdleTime() bool {
	return sameTimes(r.idleTimes(), r.RoundTripNs())
}

func sameTimes(idle facts.Percentiles, callNs int64) bool {
	return float64(idle.P10) >= degree.Most*float64(idle.Median) && idle.Median > callNs
}

// idleTimes are how long the closed connections were idle.
func (r Redial) idleTimes() facts.Percentiles {
	return caller.PercentilesOf(r.Closed, func(k *caller.Conn) int64 { return k.IdleNs })
}

// SpareShare is the part of the new connections that were opened while another of the same process was idle, and stayed
// so.
func (r Redial) SpareShare() float64 {
	spare := 0
	for _, k := range r.Dialled {
		// until then the pool may be closing what it did not use
		from, ready := k.OpenNs-k.DialNs, k.OpenNs+max(k.OpeningNs(), r.RoundTripNs())
		for _, o := range r.Conns {
			if o != k && o.Owner == k.Owner && o.CloseNs > ready && o.CloseNs-o.IdleNs <= from {
				spare++
				break
			}
		}
	}
	return float64(spare) / float64(max(len(r.Dialled), 1))
}

// Reused reports whether some of the connections went from borrower to borrower while others were closed. A connection
// that a pool closes since it has too many at that time is used for a number of calls that has no bound, most of them
// for few: with redigo the median is 1 call and p90 3; with Jedis 15 and 103. Jobs that make a connection each have a
// similar number of calls.
func (r Redial) Reused() bool {
	var all, most int64
	for _, k := range r.Closed {
		all, most = all+k.AppCalls(), max(most, k.AppCalls())
	}
	return most*int64(len(r.Closed)) >= degree.Several*all
}

// PoolOverflows reports whether the caller closes connections while it has others, soon and often, not after a time
// that is a limit, and not each after the same number of calls, as a program does that opens a connection per job. It
// does not dial while those are idle, as with connections that are leaked, or not of one pool.
//
// One that a pool has no room for is closed when it is returned: redigo, Jedis and go-redis v9 take 0.01 to 1.3 times a
// call for that on a busy host, in the median. One that is closed much later was tested when it was to be borrowed, or
// by a timer: go-redis v8, which counts idle time in whole seconds, takes 69 times a call with IdleTimeout 600 ms.
func (r Redial) PoolOverflows() bool {
	work := caller.PercentilesOf(r.Closed, (*caller.Conn).AppCalls)
	soon := r.idleTimes().Median <= degree.Several*r.RoundTripNs()
	often := float64(len(r.Closed)) > facts.HealthyMaxShare*float64(r.AppCalls())
	return !r.afterSameIdleTime() && soon && often && r.MaxConcurrent() > 1 && work.P90 > work.P10 &&
		float64(len(r.IdleDuringDials())) <= degree.Part*float64(len(r.Closed))
}

// IdleDuringDials are the closed connections that were idle while the same process dialled others.
func (r Redial) IdleDuringDials() (out []*caller.Conn) {
	dialled := caller.ByOwner(r.Dialled)
	for owner, closed := range caller.ByOwner(r.Closed) {
		out = append(out, idleDuringDials(closed, dialTimes(dialled[owner]))...)
	}
	return out
}

// RetryWaits are, by new connection, the nanoseconds since its caller lost one by a reset, which the other end had
// closed before: the call that was sent on it failed, and the library waited before it tried again.
func RetryWaits(c *caller.Caller) map[*caller.Conn]int64 {
	closed := c.ConnsWhere(func(k *caller.Conn) bool {
		return k.WasReset() && k.ServerClosedNs > 0 && k.CloseNs > k.ServerClosedNs
	})
	slices.SortFunc(closed, func(a, b *caller.Conn) int { return cmp.Compare(a.CloseNs, b.CloseNs) })
	opened := c.Opened()
	slices.SortFunc(opened, byOpening)
	waits := map[*caller.Conn]int64{}
	for _, k := range opened {
		for len(closed) > 0 && closed[0].CloseNs < k.Opening().FromNs-int64(degree.Long) {
			closed = closed[1:]
		}
		if len(closed) > 0 && closed[0].CloseNs <= k.Opening().FromNs {
			waits[k] = k.Opening().FromNs - closed[0].CloseNs
			closed = closed[1:]
		}
	}
	return waits
}

// StaleRedials are the callers whose connections the other end closed for being idle, and that opened others when they
// wanted to call.
func StaleRedials(n *facts.Node, callers []*caller.Caller) []Redial {
	once := map[*caller.Conn]bool{}
	for _, l := range MassDisconnects(n, callers) {
		for _, k := range l.Conns {
			once[k] = len(l.Conns) >= degree.Many
		}
	}
	var out []Redial
	limit := float64(n.IdleLimitNs())
	seen := 0
	for _, c := range callers {
		r := redialOf(c, func(k *caller.Conn) bool {
			return k.ServerClosedNs > 0 && k.Unanswered == 0 && k.AppCalls() > 0 && !once[k]
		})
		idle := caller.PercentilesOf(r.Closed, func(k *caller.Conn) int64 { return k.ServerClosedIdleNs })
		if sameTimes(idle, r.RoundTripNs()) && float64(idle.P10) >= degree.NearlyAll*limit && len(r.Dialled) > 0 {
			out, seen = append(out, r), seen+min(len(r.Closed), len(r.Dialled))
		}
	}
	if seen < MinRedials {
		return nil // the bound is for all callers together, since each may call seldom
	}
	return out
}
