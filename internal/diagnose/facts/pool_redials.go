package facts

// Pooled are the redials of pools: of callers that closed connections between calls, without those that a garbage
// collector closed.
func (n *Node) PoolRedials(callers []*Caller) []Redial {
	swept := map[*Conn]bool{}
	for _, l := range n.Leaks(callers) {
		for _, s := range l.GCSweeps {
			for _, k := range s.Conns {
				swept[k] = true
			}
		}
	}
	return n.Redials(callers, func(k *Conn) bool { return k.ClosedIdle() && !swept[k] })
}

// Habit reports whether the connections of a caller are made anew for a reason that lies in its pool: it is to blame
// for their number.
func (n *Node) PoolCausesRedials(c *Caller) bool {
	for _, r := range n.PoolRedials([]*Caller{c}) {
		if r.ByIdleLimit() || r.PoolOverflows() {
			return true
		}
	}
	return len(n.Redials([]*Caller{c}, (*Conn).ClosedWaiting)) > 0
}

// limitSharp: a limit closes nothing earlier. Where what ends connections is something else that happens now and then,
// a tenth of them ends within a sixth of the median (exponential times).
const minSharpness = 0.5

// spareOften: where a new connection is opened for most calls while another of the same process lies idle, they are not
// of one pool.
const maxSpareShare = 0.5

// Limited: the connections were put away after the same time without a call, and were missed.
func (r Redial) ByIdleLimit() bool { return r.afterSameIdleTime() && r.SpareShare() <= maxSpareShare }

func (r Redial) afterSameIdleTime() bool {
	idle := PercentilesOf(r.Closed, func(k *Conn) int64 { return k.IdleNs })
	return float64(idle.P10) >= minSharpness*float64(idle.Median) && idle.Median > r.RoundTripNs()
}

// Spare is the part of the new connections that were opened while another of the same process lay idle, and went on to.
func (r Redial) SpareShare() float64 {
	spare := 0
	for _, k := range r.Dialled {
		// until then the pool may be closing what it did not use
		from, ready := k.OpenNs-k.DialNs, k.OpenNs+max(k.OpeningNs(), r.RoundTripNs())
		for _, o := range r.Conns {
			if o != k && o.CloseNs > ready && o.CloseNs-o.IdleNs <= from {
				spare++
				break
			}
		}
	}
	return float64(spare) / float64(max(len(r.Dialled), 1))
}

// churnOfCalls is the part of its calls for which a caller opens a connection from which on it is worth a word
// ; so are churnMany per second, whatever their part.
const minDialsPerCall = 0.01

// passedSeldom: a pool passes none over that it is about to put away. The rest may be another pool's of the same
// process.
const maxPassedShare = 0.1

// oftenReused: a connection that a pool puts away when it has too many at that moment is used for a number of calls
// that has no bound, most of them for few. Measured with redigo: 1 call in the middle and 3 for 9 of 10; with Jedis 15
// and 103. Jobs that make a connection each have a like number of calls.
const minReuseRatio = 3

// Reused reports whether some of the connections went from caller to caller while others were put away.
func (r Redial) Reused() bool {
	var all, most int64
	for _, k := range r.Closed {
		all, most = all+k.AppCalls(), max(most, k.AppCalls())
	}
	return most*int64(len(r.Closed)) >= minReuseRatio*all
}

// soonTimes: a connection that a pool has no room for is closed when it is given back, within this many times a call.
// One that is closed much later was looked at when it was to be taken, or by a timer. Measured with redigo, Jedis and
// go-redis v9 on a busy host: 0.01 to 1.3 times in the middle; go-redis v8, which counts idle time in whole seconds,
// with IdleTimeout 600 ms: 69 times.
const maxCloseDelay = 4

// Overflows: the caller puts connections away while it has others, not after a time that is a limit, and not each after
// the same number of calls, as one does that opens a connection per job. What it puts away it does not dial beside, as
// with connections that are lost, or not of one pool.
func (r Redial) PoolOverflows() bool {
	work := PercentilesOf(r.Closed, (*Conn).AppCalls)
	much := float64(len(r.Closed)) > min(minDialsPerCall*float64(r.AppCalls()), manyChurn*r.seconds)
	soon := PercentilesOf(r.Closed, func(k *Conn) int64 { return k.IdleNs }).Median <= maxCloseDelay*r.RoundTripNs()
	return !r.afterSameIdleTime() && soon && r.MaxConcurrent() > 1 && work.P90 > work.P10 && much &&
		float64(len(IdleDuringDials(r.Closed, DialTimes(r.Dialled)))) <= maxPassedShare*float64(len(r.Closed))
}

// Stale are the callers whose connections the other end closed for being idle, and that opened others when they wanted
// to call.
func (n *Node) StaleRedials(callers []*Caller) []Redial {
	once := map[*Conn]bool{}
	for _, l := range n.MassDisconnects(callers) {
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
		r := redialOf(c, func(k *Conn) bool {
			return k.ServerClosedNs > 0 && k.Unanswered == 0 && k.AppCalls() > 0 &&
				!once[k]
		})
		idle := PercentilesOf(r.Closed, func(k *Conn) int64 { return k.ServerClosedIdleNs })
		same := float64(idle.P10) >= minSharpness*float64(idle.Median) && idle.Median > r.RoundTripNs()
		if same && len(r.Dialled) > 0 && (limit == 0 || idle.P10 >= limit*9/10) {
			out, seen = append(out, r), seen+min(len(r.Closed), len(r.Dialled))
		}
	}
	if seen < MinRedials {
		return nil // of all callers together: each may call seldom
	}
	return out
}
