package connection

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// Overhead is the time that the callers of a node lost before their commands and between them. It is no part of the
// calls that the tap saw, which begin with the send of a command.
type Overhead struct {
	// OpeningNs is the time of dials and handshakes that calls waited for, of DNS queries before dials, and of PINGs
	// that test connections, in nanoseconds.
	OpeningNs int64
	// UnansweredNs is the time of calls that were given up, in nanoseconds.
	UnansweredNs int64
	// SpentNs is all time that the callers spent on their connections, in nanoseconds; 1 at least.
	SpentNs int64
}

// Share is the share of the callers' time on their connections that they lost before their commands and between them.
func (l Overhead) Share() float64 {
	return min(float64(l.OpeningNs+l.UnansweredNs)/float64(l.SpentNs), 1)
}

// OverheadOf is that of some callers of the node.
func OverheadOf(n *facts.Node, callers []*caller.Caller) (l Overhead) {
	for _, c := range callers {
		l.SpentNs += c.SpentNs()
		for _, k := range inNeed(c) {
			l.OpeningNs += k.OpeningNs()
		}
		for _, k := range c.ConnsWhere((*caller.Conn).ClosedWaiting) {
			l.UnansweredNs += k.IdleNs
		}
	}
	for _, a := range DNSClients(n, callers) {
		l.OpeningNs, l.SpentNs = l.OpeningNs+a.QueryNs(), l.SpentNs+a.QueryNs()
	}
	if p, ok := BorrowPings(n); ok {
		l.OpeningNs += p.PingNs
	}
	l.SpentNs = max(l.SpentNs, 1)
	return l
}

// TotalOverhead is that of the callers of all nodes together: the shares that a cause has of it at each node can be
// added up, and a few connections to a node that is hardly called count for what they cost.
func TotalOverhead(c *facts.Case) Overhead { return facts.Once(c, "overhead", findTotalOverhead) }

func findTotalOverhead(c *facts.Case) (out Overhead) {
	for _, n := range c.Nodes {
		l := OverheadOf(n, caller.Callers(n))
		out.OpeningNs, out.UnansweredNs = out.OpeningNs+l.OpeningNs, out.UnansweredNs+l.UnansweredNs
		out.SpentNs += l.SpentNs
	}
	return out
}

// LostNs is the time of a kind that callers of the node spent and can have lost, in nanoseconds; 0 where no source
// counts it.
func LostNs(n *facts.Node, kind facts.LossKind) float64 {
	if kind == facts.LostInCalls {
		return max(CallTimeNs(n)-float64(slowExcessNs(n)), 0)
	}
	if n.Ledger.Users.Calls == 0 {
		return 0
	}
	switch l := OverheadOf(n, caller.Callers(n)); kind {
	case facts.LostOpening:
		return float64(l.OpeningNs)
	case facts.LostSilent:
		return float64(l.UnansweredNs)
	}
	return 0
}

// CallTimeNs is the time of all calls to the node, slow or not, in nanoseconds: of its users where the tap saw them,
// else of slowpath's own. In a recording that was thinned the histograms count all calls, its connections do not.
func CallTimeNs(n *facts.Node) float64 {
	if ns := caller.TotalInFlightNs(caller.Timelines(n)); ns > 1 && !n.Rec.Thinned() {
		return ns
	}
	if users := n.Ledger.Users; users.Calls > 0 {
		return float64(users.TotalNs) / float64(len(n.Nodes))
	}
	var ns int64
	for _, p := range n.Ledger.Paths {
		if p.Node == n.Address {
			ns += p.TotalNs
		}
	}
	for _, c := range n.Rec.Calls {
		if c.Source == recording.SourceProbe && c.Node == n.Address && c.Error != "" {
			ns += max(c.EndNs-c.IntendedNs, n.Ledger.ThresholdNs) // a call that fails is as bad as one that is slow
		}
	}
	return float64(ns)
}

// slowExcessNs is the excess of the slow calls that CallTimeNs counts, in nanoseconds.
func slowExcessNs(n *facts.Node) (ns int64) {
	users := n.Ledger.Users.Calls > 0
	for _, a := range n.Ledger.Slow {
		if a.Call.Node == n.Address && (a.Call.Source == recording.SourceTap) == users {
			ns += a.ExcessNs
		}
	}
	return ns
}
