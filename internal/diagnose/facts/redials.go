package facts

import (
	"strings"
)

// Redial is a caller's habit of closing connections and opening others.
type Redial struct {
	*Caller
	Closed  []*Conn // the client closed them
	Dialled []*Conn // it opened them on the way of a call: the first came right behind the handshake

	seconds float64 // of the watch
}

// MinRedials: fewer are no habit.
const MinRedials = HealthyMinCalls

// aheadTimes: a connection whose first call came later than this times its own round trips was opened ahead of it
// (MinIdleConns, a warm-up).
const maxFirstCallDelay = 2

// Redials are the callers that closed connections for a reason and opened others.
func (n *Node) Redials(callers []*Caller, reason func(*Conn) bool) []Redial {
	var out []Redial
	for _, c := range callers {
		r := redialOf(c, reason)
		r.seconds = n.Seconds()
		if k := min(len(r.Closed), len(r.Dialled)); k >= MinRedials {
			out = append(out, r)
		}
	}
	return out
}

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

func redialOf(c *Caller, reason func(*Conn) bool) Redial {
	r := Redial{Caller: c, Closed: c.ConnsWhere(reason)}
	for _, k := range c.Opened() {
		if !k.OpenedAheadOfUse(c.RoundTripNs()) {
			r.Dialled = append(r.Dialled, k)
		}
	}
	return r
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

// Ahead: it was open before a call wanted it. Its own round trips count as well as usual ones, since in a crowd they
// take longer.
func (k *Conn) OpenedAheadOfUse(callNs int64) bool {
	switch {
	case k.Handshake == nil:
		return false
	case k.Handshake.RestNs > 0:
		return k.Handshake.RestNs > (maxFirstCallDelay-1)*int64(k.HandshakeRoundTrips()+1)*max(callNs,
			k.HandshakeRoundTripNs())
	}
	// recorded before the rest was
	return k.FirstReplyNs-k.DialNs > maxFirstCallDelay*int64(k.HandshakeRoundTrips()+1)*callNs
}

// CostNs is what those new connections cost that took the place of ended ones.
func (r Redial) CostNs() int64 {
	var ns int64
	for _, k := range r.Dialled {
		ns += k.OpeningNs()
	}
	return ns * int64(min(len(r.Closed), len(r.Dialled))) / int64(max(len(r.Dialled), 1))
}

// RedialSum are the redials of several callers.
type RedialSum struct {
	// Callers are those who redialled.
	Callers []*Caller
	// Largest is the redial with the most closed connections.
	Largest Redial
	// CostNs is what all of them cost, in nanoseconds.
	CostNs int64
}

// SumRedials adds up redials.
func SumRedials(list []Redial) (sum RedialSum) {
	for _, r := range list {
		sum.Callers, sum.CostNs = append(sum.Callers, r.Caller), sum.CostNs+r.CostNs()
		if len(r.Closed) > len(sum.Largest.Closed) {
			sum.Largest = r
		}
	}
	return sum
}

// GreetingOf is the handshake that most of the connections began with.
func CommonHandshake(conns []*Conn) string {
	count, best := map[string]int{}, ""
	for _, k := range conns {
		if k.Handshake == nil {
			continue
		}
		s := strings.Join(k.Handshake.Ops, ", ")
		if count[s]++; count[s] > count[best] || count[s] == count[best] && s < best {
			best = s
		}
	}
	return best
}

// LostTime is what the callers of a node lost of their time before and beside their commands. It is no part of the
// calls that the kernel saw, which begin with a command's send.
type Overhead struct {
	OpeningNs    int64 // new connections on the way of calls: dials and handshakes
	UnansweredNs int64 // calls that were given up
	PingNs       int64 // tests of connections
	DNSQueryNs   int64 // questions to name servers before dials
	ExcessNs     int64 // of the slow calls themselves
	SpentNs      int64 // all their time on their connections
}

// Part is that of the callers' time on their connections which they lost before and beside their commands.
func (l Overhead) Share() float64 {
	return min(float64(l.OpeningNs+l.UnansweredNs+l.PingNs+l.DNSQueryNs)/float64(max(l.SpentNs, 1)), 1)
}

func (n *Node) Overhead(callers []*Caller) Overhead {
	l := Overhead{SpentNs: spentByCallers(callers), ExcessNs: n.Ledger.Users.ExcessNs}
	for _, c := range callers {
		for _, k := range c.Opened() {
			if !k.OpenedAheadOfUse(c.RoundTripNs()) {
				l.OpeningNs += k.OpeningNs()
			}
		}
		for _, k := range c.ConnsWhere((*Conn).ClosedWaiting) {
			l.UnansweredNs += k.IdleNs
		}
	}
	if p, ok := n.BorrowPings(); ok {
		l.PingNs = p.PingNs
	}
	l.DNSQueryNs = n.DNSQueryNs(callers)
	l.SpentNs += l.DNSQueryNs
	return l
}

// LostTimeOfAll are the losses of the callers of all nodes together: against them the shares that a cause has at each
// node can be added up, and a few connections to a node that is hardly called weigh what they cost.
func (c *Case) TotalOverhead() Overhead {
	if c.overhead == nil {
		c.overhead = &Overhead{ExcessNs: c.Ledger.Users.ExcessNs}
		for _, n := range c.Nodes {
			l := n.Overhead(n.Callers())
			c.overhead.OpeningNs += l.OpeningNs
			c.overhead.UnansweredNs += l.UnansweredNs
			c.overhead.PingNs += l.PingNs
			c.overhead.DNSQueryNs += l.DNSQueryNs
			c.overhead.SpentNs += l.SpentNs
		}
	}
	return *c.overhead
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
