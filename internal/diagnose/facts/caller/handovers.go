package caller

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
)

// Handovers are connections that one thread of a caller gave to another, which had slept until then.
type Handovers struct {
	*Caller
	// Conns is the number of its connections that were used until the end of the watch.
	Conns int
	// Turns is how often another thread used a connection than before.
	Turns float64
	// Handed is how many of them were hand-overs.
	Handed float64
	// MinShare is Handed per turn, on the connection with the least.
	MinShare float64
	// WaitedNs is how long those who got a connection had waited, all together, in nanoseconds.
	WaitedNs float64
	// LongestNs is the longest of these waits since the connection was first seen, in nanoseconds.
	LongestNs float64
	// KeptNs is how long those who gave a connection had kept it after their last reply, all together, in nanoseconds.
	KeptNs float64
	// InFlightNs is the time with a call in flight, all connections together, in nanoseconds.
	InFlightNs float64
	// Calls is the number of calls.
	Calls float64
}

// HandoversOf sums up the hand-overs of a caller's connections; ok is false where none were seen.
func HandoversOf(n *facts.Node, c *Caller) (h Handovers, ok bool) {
	h = Handovers{Caller: c, MinShare: 1}
	for _, k := range c.Conns {
		if k.CloseNs > 0 {
			continue
		}
		first, last, ok := EndsOf(k.Samples())
		if !ok || last.Calls == first.Calls {
			continue
		}
		turns, handed := float64(last.Turns-first.Turns), float64(last.Handed-first.Handed)
		h.Conns++
		h.Turns, h.Handed, h.Calls = h.Turns+turns, h.Handed+handed, h.Calls+float64(last.Calls-first.Calls)
		h.MinShare = min(h.MinShare, handed/max(turns, 1))
		h.WaitedNs += float64(last.WaitedNs - first.WaitedNs)
		h.KeptNs += float64(last.KeptNs - first.KeptNs)
		h.InFlightNs += float64(last.InFlightNs - first.InFlightNs)
		h.LongestNs = max(h.LongestNs, float64(last.WaitedMaxNs))
	}
	return h, h.Handed > 0
}

// InTurns reports whether threads of a process use one of its connections in turns, each for fewer calls than a request
// may well make one after the other: they share it, and none of them makes all these calls. Of a Go program the threads
// say nothing, since goroutines move between them.
func InTurns(n *facts.Node, pid int, k *Conn) bool {
	first, last, ok := EndsOf(k.Samples())
	return ok && !hosts.IsGo(n.Case, pid) && last.Calls-first.Calls < loopCalls*(last.Turns-first.Turns)
}

// loopCalls is how many calls one after the other are a loop: a request may well make fewer that depend on each other.
// Bound: slowpath, CHAIN_CALLS of the tap.
const loopCalls = 10
