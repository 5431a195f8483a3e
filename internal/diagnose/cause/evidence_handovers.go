package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// Bounds of connections that threads queue for.
const (
	minHandovers     = 30  // fewer are chance
	minHandoverShare = 0.7 // of the turns of each connection: a pool with a free connection gives that, and wakes nobody
)

// queuesForConns reports whether the threads of a process queue for its connections: nearly each time another thread
// uses one, it had slept until the one before gave it back, and had waited longer than calls take.
func queuesForConns(n *facts.Node, h facts.Handovers) bool {
	return h.Conns >= poolConns && h.Handed >= minHandovers && h.MinShare >= minHandoverShare &&
		h.WaitedNs/h.Handed >= waitLong*h.InFlightNs/h.Calls && slowShare(n, h.Caller) < minSlowShare
}

// explainHandovers finds threads that wait for the connection of another one.
func explainHandovers(n *facts.Node, callers []*facts.Caller) *Finding {
	var worst facts.Handovers
	var waited, flight float64
	for _, c := range callers {
		h, ok := n.HandoversOf(c)
		flight += h.InFlightNs
		if !ok || !queuesForConns(n, h) {
			continue
		}
		waited += h.WaitedNs
		if h.WaitedNs > worst.WaitedNs {
			worst = h
		}
	}
	if worst.Caller == nil {
		return nil
	}
	mean, call := int64(worst.WaitedNs/worst.Handed), int64(worst.InFlightNs/worst.Calls)
	kept := int64(worst.KeptNs / worst.Handed)
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.9, ExcessShare: waited / (waited + flight)}
	f.lose(n, facts.LostWaiting, waited)
	f.support(recording.SourceTap, float64(mean), "ns",
		"%s has %s: threads that got one had slept for %s on average (at most %s), until the thread that used it "+
			"before woke them; a call takes %s", worst.Name, counted(worst.Conns, "connection"), format.Brief(mean),
		format.Brief(int64(worst.LongestNs)), format.Brief(call))
	f.support(recording.SourceTap, worst.Handed, "turns",
		"of %.0f times that another thread used a connection than before, %.0f were such hand-overs", worst.Turns,
		worst.Handed)
	// by Little's law
	f.support(recording.SourceTap, worst.WaitedNs/1e9/n.Seconds(), "threads",
		"about %.1f of its threads waited for a connection at a time", worst.WaitedNs/1e9/n.Seconds())
	if kept > call {
		f.support(recording.SourceTap, float64(kept), "ns",
			"a thread keeps its connection for %s after its last reply", format.Brief(kept))
		f.Fix = append(f.Fix, fmt.Sprintf("Give the connection back before the other work: it is kept for %s after "+
			"the last reply, and a call takes %s", format.Brief(kept), format.Brief(call)))
	}
	size := worst.Conns + int(worst.WaitedNs/1e9/n.Seconds()) + 1
	f.Fix = append(f.Fix, fmt.Sprintf("Give the pool more than %s: about %d are needed at a time",
		counted(worst.Conns, "connection"), size))
	f.Fix = append(f.Fix, remedy.For(n, remedy.LargerPool, remedy.Values{"connections": size})...)
	f.See = []string{"https://redis.io/docs/latest/develop/clients/pools-and-muxing/"}
	return f
}
