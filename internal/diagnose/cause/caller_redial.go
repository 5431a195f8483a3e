package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/recording"
)

// redial is a caller's habit of closing connections and opening others.
type redial struct {
	*Caller
	ended []*Conn // the client closed them
	fresh []*Conn // it opened them on the way of a call: the first came right behind the handshake

	seconds float64 // of the watch
}

// minRedials: fewer are no habit.
const minRedials = healthyMinCalls

// aheadTimes: a connection whose first call came later than this times its own round trips was opened ahead of it
// (MinIdleConns, a warm-up).
const aheadTimes = 2

// redials are the callers that closed connections for a reason and opened others.
func (n *Node) redials(callers []*Caller, reason func(*Conn) bool) []redial {
	var out []redial
	for _, c := range callers {
		r := redialOf(c, reason)
		r.seconds = n.Seconds()
		if k := min(len(r.ended), len(r.fresh)); k >= minRedials {
			out = append(out, r)
		}
	}
	return out
}

// pooled are the redials of pools: of callers that closed connections between calls, without those that a garbage
// collector closed.
func (n *Node) pooled(callers []*Caller) []redial {
	swept := map[*Conn]bool{}
	for _, l := range n.leaks(callers) {
		for _, s := range l.swept {
			for _, k := range s.conns {
				swept[k] = true
			}
		}
	}
	return n.redials(callers, func(k *Conn) bool { return k.putAway() && !swept[k] })
}

func redialOf(c *Caller, reason func(*Conn) bool) redial {
	r := redial{Caller: c, ended: c.conns(reason)}
	for _, k := range c.opened() {
		if !k.ahead(c.callNs()) {
			r.fresh = append(r.fresh, k)
		}
	}
	return r
}

// habit reports whether the connections of a caller are made anew for a reason that lies in its pool: it is to blame
// for their number.
func (n *Node) habit(c *Caller) bool {
	for _, r := range n.pooled([]*Caller{c}) {
		if r.limited() || r.overflows() {
			return true
		}
	}
	return len(n.redials([]*Caller{c}, (*Conn).gaveUp)) > 0
}

// ahead: it was open before a call wanted it. Its own round trips count as well as usual ones, since in a crowd they
// take longer.
func (k *Conn) ahead(callNs int64) bool {
	switch {
	case k.Greeting == nil:
		return false
	case k.Greeting.RestNs > 0:
		return k.Greeting.RestNs > (aheadTimes-1)*int64(k.trips()+1)*max(callNs, k.tripNs())
	}
	return k.GreetingNs-k.DialNs > aheadTimes*int64(k.trips()+1)*callNs // recorded before the rest was
}

// costNs is what those new connections cost that took the place of ended ones.
func (r redial) costNs() int64 {
	var ns int64
	for _, k := range r.fresh {
		ns += k.openingNs()
	}
	return ns * int64(min(len(r.ended), len(r.fresh))) / int64(max(len(r.fresh), 1))
}

// mostOf puts the redials of callers together: whose they are, the one with the most connections, and what all cost.
func mostOf(list []redial) (callers []*Caller, most redial, costNs int64) {
	for _, r := range list {
		callers, costNs = append(callers, r.Caller), costNs+r.costNs()
		if len(r.ended) > len(most.ended) {
			most = r
		}
	}
	return callers, most, costNs
}

// opening tells what a new connection costs before its first command, and what is asked on it.
func (f *Finding) opening(r redial) {
	cost, trips := spreadOf(r.fresh, (*Conn).openingNs),
		spreadOf(r.fresh, func(k *Conn) int64 { return int64(k.trips()) })
	dial := spreadOf(r.fresh, func(k *Conn) int64 { return k.DialNs })
	text := fmt.Sprintf("a new connection costs %s before its first command (dial %s", dur(cost.mid), dur(dial.mid))
	if ops := greetingOf(r.fresh); ops != "" {
		text += fmt.Sprintf(", then %d round trips: %s", trips.mid, ops)
	}
	f.support(recording.SourceTap, text+fmt.Sprintf("); a call takes %s", dur(r.callNs())), float64(cost.mid), "ns")
}

// greetingOf is the handshake that most of the connections began with.
func greetingOf(conns []*Conn) string {
	count, best := map[string]int{}, ""
	for _, k := range conns {
		if k.Greeting == nil {
			continue
		}
		s := strings.Join(k.Greeting.Ops, ", ")
		if count[s]++; count[s] > count[best] || count[s] == count[best] && s < best {
			best = s
		}
	}
	return best
}

// remote says that the time of calls was seen from the server's end only.
func (f *Finding) remote(c *Caller) {
	if c.PID == 0 {
		f.Confidence -= 0.1
		f.doubt(recording.SourceTap, "the callers run on other hosts: their processes and the time of their dials "+
			"were not seen (watch one of them, too)", 0, "")
	}
}

// losses is what the callers of a node lost of their time before and beside their commands. It is no part of the calls
// that the kernel saw, which begin with a command's send.
type losses struct {
	openingNs int64 // new connections on the way of calls: dials and handshakes
	givenUpNs int64 // calls that were given up
	pingNs    int64 // tests of connections
	lookupNs  int64 // questions to name servers before dials
	excessNs  int64 // of the slow calls themselves
	spentNs   int64 // all their time on their connections
}

// part is that of the callers' time on their connections which they lost before and beside their commands.
func (l losses) part() float64 {
	return min(float64(l.openingNs+l.givenUpNs+l.pingNs+l.lookupNs)/float64(max(l.spentNs, 1)), 1)
}

func (n *Node) losses(callers []*Caller) losses {
	l := losses{spentNs: spentByCallers(callers), excessNs: n.Ledger.Users.ExcessNs}
	for _, c := range callers {
		for _, k := range c.opened() {
			if !k.ahead(c.callNs()) {
				l.openingNs += k.openingNs()
			}
		}
		for _, k := range c.conns((*Conn).gaveUp) {
			l.givenUpNs += k.IdleNs
		}
	}
	if p, ok := n.borrowPings(); ok {
		l.pingNs = p.pingNs
	}
	l.lookupNs = n.lookupNs(callers)
	l.spentNs += l.lookupNs
	return l
}

// lossesOfAll are the losses of the callers of all nodes together: against them the shares that a cause has at each
// node can be added up, and a few connections to a node that is hardly called weigh what they cost.
func (c *Case) lossesOfAll() losses {
	if c.lost == nil {
		c.lost = &losses{excessNs: c.Ledger.Users.ExcessNs}
		for _, n := range c.Nodes {
			l := n.losses(n.callers())
			c.lost.openingNs += l.openingNs
			c.lost.givenUpNs += l.givenUpNs
			c.lost.pingNs += l.pingNs
			c.lost.lookupNs += l.lookupNs
			c.lost.spentNs += l.spentNs
		}
	}
	return *c.lost
}

// finding starts the finding of a cause that took some of the callers' time; nil where that is too little for anybody
// to notice.
func (l losses) finding(n *Node, ns int64, confidence float64) *Finding {
	if float64(ns) < minShare*float64(l.spentNs) {
		return nil
	}
	all := max(l.openingNs+l.givenUpNs+l.pingNs+l.lookupNs, ns) + l.excessNs
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: confidence, ExcessShare: float64(ns) / float64(max(all, 1))}
	f.support(recording.SourceTap, fmt.Sprintf("that took %s of the %s that the callers spent on their connections "+
		"(%.0f %%)", dur(ns), dur(l.spentNs), 100*float64(ns)/float64(l.spentNs)), float64(ns), "ns")
	return f
}
