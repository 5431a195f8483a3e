package connection

import (
	"cmp"
	"slices"

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
	return Redials(n, callers, func(k *caller.Conn) bool { return k.ClosedIdle() && !swept[k] })
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
	return len(Redials(n, []*caller.Caller{c}, (*caller.Conn).ClosedWaiting)) > 0
}

// minSharpness is the least 10th percentile of the idle times as a share of their median where a limit ends
// connections: a limit closes nothing earlier. Where something else ends them now and then, 10 % of them end within a
// sixth of the median (exponential times).
// Bound: statistics, of exponential times the 10th percentile is 0.15 of the median.
const minSharpness = 0.5

// nearLimit: what a limit of the server ended was idle for this part of the limit at least.
// Bound: guess, the limit is in whole seconds, and the tap's clock is not the server's.
const nearLimit = 0.9

// maxSpareShare: where more of the new connections than this are opened while another of the same process is idle, they
// are not of one pool.
// Bound: majority, of the new connections.
const maxSpareShare = 0.5

// ByIdleLimit reports whether the connections were closed after the same time without a call (minSharpness), and were
// missed (maxSpareShare). A job that closes its connection when it is done does so sooner than any limit (minIdleNs).
func (r Redial) ByIdleLimit() bool {
	idle := caller.PercentilesOf(r.Closed, func(k *caller.Conn) int64 { return k.IdleNs })
	return idle.Median >= caller.MinIdleNs && r.afterSameIdleTime() && r.SpareShare() <= maxSpareShare
}

func (r Redial) afterSameIdleTime() bool {
	idle := caller.PercentilesOf(r.Closed, func(k *caller.Conn) int64 { return k.IdleNs })
	return float64(idle.P10) >= minSharpness*float64(idle.Median) && idle.Median > r.RoundTripNs()
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

// minDialsPerCall is the share of its calls for which a caller opens a connection from which it is worth a finding; so
// are manyChurn per second, whatever their share.
// Bound: guess, as HealthyMaxShare.
const minDialsPerCall = 0.01

// maxPassedShare is the largest share of the closed connections that were idle during dials: a pool dials none while it
// has an idle one. The rest may be another pool's of the same process.
// Bound: guess.
const maxPassedShare = 0.1

// minReuseRatio is the least ratio of the most used connection to their mean. A connection that a pool closes since it
// has too many at that time is used for a number of calls that has no bound, most of them for few. Measured with
// redigo: median 1 call and p90 3; with Jedis 15 and 103. Jobs that make a connection each have a similar number of
// calls.
// Bound: noted, with redigo and Jedis.
const minReuseRatio = 3

// Reused reports whether some of the connections went from borrower to borrower (minReuseRatio) while others were
// closed.
func (r Redial) Reused() bool {
	var all, most int64
	for _, k := range r.Closed {
		all, most = all+k.AppCalls(), max(most, k.AppCalls())
	}
	return most*int64(len(r.Closed)) >= minReuseRatio*all
}

// maxCloseDelay: a connection that a pool has no room for is closed when it is returned, within this many times a call.
// One that is closed much later was tested when it was to be borrowed, or by a timer. Measured with redigo, Jedis and
// go-redis v9 on a busy host: median 0.01 to 1.3 times; go-redis v8, which counts idle time in whole seconds, with
// IdleTimeout 600 ms: 69 times.
// Bound: noted, with redigo, Jedis and go-redis: between 1.3 and 69.
const maxCloseDelay = 4

// PoolOverflows reports whether the caller closes connections while it has others, soon (maxCloseDelay), not after a
// time that is a limit, and not each after the same number of calls, as a program does that opens a connection per job.
// It does not dial while those are idle (maxPassedShare), as with connections that are leaked, or not of one pool.
func (r Redial) PoolOverflows() bool {
	work := caller.PercentilesOf(r.Closed, (*caller.Conn).AppCalls)
	much := float64(len(r.Closed)) > min(minDialsPerCall*float64(r.AppCalls()), manyChurn*r.seconds)
	soon := caller.PercentilesOf(r.Closed,
		func(k *caller.Conn) int64 { return k.IdleNs }).Median <= maxCloseDelay*r.RoundTripNs()
	return !r.afterSameIdleTime() && soon && r.MaxConcurrent() > 1 && work.P90 > work.P10 && much &&
		float64(len(r.IdleDuringDials())) <= maxPassedShare*float64(len(r.Closed))
}

// IdleDuringDials are the closed connections that were idle while the same process dialled others.
func (r Redial) IdleDuringDials() (out []*caller.Conn) {
	dialled := caller.ByOwner(r.Dialled)
	for owner, closed := range caller.ByOwner(r.Closed) {
		out = append(out, idleDuringDials(closed, dialTimes(dialled[owner]))...)
	}
	return out
}

// maxRetryWaitNs: a dial so long after its caller found a connection closed has another reason.
// Bound: guess, twice the longest wait of go-redis between two attempts.
const maxRetryWaitNs = int64(1e9)

// RetryWaits are, by new connection, the nanoseconds since its caller lost one by a reset, which the other end had
// closed before: the call that was sent on it failed, and the library waited before it tried again.
func RetryWaits(c *caller.Caller) map[*caller.Conn]int64 {
	closed := c.ConnsWhere(func(k *caller.Conn) bool {
		return k.WasReset() && k.ServerClosedNs > 0 && k.CloseNs > k.ServerClosedNs
	})
	slices.SortFunc(closed, func(a, b *caller.Conn) int { return cmp.Compare(a.CloseNs, b.CloseNs) })
	opened := c.Opened()
	slices.SortFunc(opened, func(a, b *caller.Conn) int { return cmp.Compare(a.Opening().FromNs, b.Opening().FromNs) })
	waits := map[*caller.Conn]int64{}
	for _, k := range opened {
		for len(closed) > 0 && closed[0].CloseNs < k.Opening().FromNs-maxRetryWaitNs {
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
		if len(l.Conns) >= MinHerd {
			for _, k := range l.Conns {
				once[k] = true
			}
		}
	}
	var out []Redial
	limit := n.IdleLimitNs()
	seen := 0
	for _, c := range callers {
		r := redialOf(c, func(k *caller.Conn) bool {
			return k.ServerClosedNs > 0 && k.Unanswered == 0 && k.AppCalls() > 0 && !once[k]
		})
		idle := caller.PercentilesOf(r.Closed, func(k *caller.Conn) int64 { return k.ServerClosedIdleNs })
		same := float64(idle.P10) >= minSharpness*float64(idle.Median) && idle.Median > r.RoundTripNs()
		if same && len(r.Dialled) > 0 && (limit == 0 || float64(idle.P10) >= nearLimit*float64(limit)) {
			out, seen = append(out, r), seen+min(len(r.Closed), len(r.Dialled))
		}
	}
	if seen < MinRedials {
		return nil // the bound is for all callers together, since each may call seldom
	}
	return out
}
