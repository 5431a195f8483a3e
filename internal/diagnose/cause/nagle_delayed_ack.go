package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// nagleDelayedACK: a sender without TCP_NODELAY writes a request in two writes. Its kernel holds the second until the
// first is acknowledged (RFC 896); the other side delays that acknowledgement, to send it with a reply.
var nagleDelayedACK = Cause{
	ID:      "nagle-delayed-ack",
	Explain: explainNagle,
}

const (
	// The delayed acknowledgement comes after 40 ms (TCP_DELACK_MIN of include/net/tcp.h) or up to a tick of the timer
	// later, 10 ms at HZ=100. It takes one way to the sender, and the last piece the other.
	// Bound: kernel, TCP_DELACK_MIN, 40 ms, less 1 ms for the way.
	delackMinNs = int64(39e6)
	delackMaxNs = int64(51e6) // Bound: kernel, TCP_DELACK_MIN and a tick at HZ=100, and 1 ms for the way.
)

// lateRequest is the time of a call from when its request was begun to its arrival. Time when the process at either end
// did not run does not count: the kernels do this.
func lateRequest(a account.Account) int64 {
	if a.In(account.Network, account.Retransmit) > 0 {
		return 0
	}
	return a.In(account.Network, account.Out)
}

// nagled are the connections whose requests wait for delayed acknowledgements.
type nagled struct {
	node    *facts.Node
	tripNs  int64
	sockets map[string]string // whether they may, by their sockets
	conns   map[string]bool
}

func nagledConns(n *facts.Node, tripNs int64) nagled {
	g := nagled{n, tripNs, connection.NagleConns(n), map[string]bool{}}
	late, delayed := facts.NameCounts{}, facts.NameCounts{}
	for _, a := range n.Ledger.Slow {
		if a.Call.Source != recording.SourceTap || lateRequest(a) < n.Ledger.ThresholdNs {
			continue
		}
		late[a.Call.Conn]++
		if g.delayedNs(a) > 0 {
			delayed[a.Call.Conn]++
		}
	}
	for conn, many := range delayed { // a program that pauses while it writes a request may pause for any time
		if float64(many) >= degree.NearlyAll*float64(late[conn]) && g.sockets[conn] != recording.NagleOff {
			g.conns[conn] = true
		}
	}
	return g
}

// delayedNs is the time by which a request was late, if it is that of a delayed acknowledgement.
func (g nagled) delayedNs(a account.Account) int64 {
	if ns := lateRequest(a); ns >= delackMinNs && ns <= delackMaxNs+g.tripNs {
		return ns
	}
	return 0
}

// seen is how many of the connections are known to lack TCP_NODELAY.
func (g nagled) seen() (many int) {
	for conn := range g.conns {
		if g.sockets[conn] == recording.NagleOn {
			many++
		}
	}
	return many
}

func explainNagle(n *facts.Node) *Finding {
	baseline := int64(0)
	if kept, ok := n.Ledger.Path(n.Address, "kept"); ok {
		baseline = kept.P50Ns
	}
	if degree.Several*baseline >= delackMinNs {
		return nil // on a path as slow as that, 40 ms prove nothing
	}
	g := nagledConns(n, baseline)
	who, ops := facts.NameCounts{}, facts.NameCounts{}
	cl := n.TapClaim(func(a account.Account) facts.StateTimes {
		if !g.conns[a.Call.Conn] || g.delayedNs(a) == 0 {
			return nil
		}
		who[caller.ClientLabel(a.Call.Conn, a.Call.Client)]++
		ops[a.Call.Op]++
		return facts.TimesOf(a, func(s account.Segment) bool {
			return s.Actor == account.Network && s.State == account.Out
		})
	})
	if cl.Calls < facts.HealthyMinCalls {
		return nil
	}
	f := finding(n, cl)
	f.support(recording.SourceTap, float64(cl.Calls), "calls", "%s (%s) arrived 40 ms after they were begun, with "+
		"nothing retransmitted: %s", ofSlow(cl.Calls, n), ops.List(3), who.List(3))
	if seen := g.seen(); seen > 0 {
		f.support(recording.SourceTap, float64(seen), "connections", "of %s of these calls %d have no TCP_NODELAY: "+
			"the kernel of the client holds small pieces back", counted(len(g.conns), "connection"), seen)
	} else {
		f.doubt(recording.SourceTap, 0, "",
			"whether these clients set TCP_NODELAY was not seen: they run on other hosts")
	}
	f.weighACKs(n, int64(cl.Calls))
	f.FixSteps = nagleFix(who)
	return f
}

func nagleFix(who facts.NameCounts) []remedy.Step {
	return []remedy.Step{
		{
			ID: "tcp-nodelay", Kind: remedy.Setting, Option: "TCP_NODELAY", To: "1", Restart: "the application",
			Where: "the sockets of the clients, and of proxies on the path",
			Text: fmt.Sprintf("On the connections of %s: Lettuce before 6.0 SocketOptions.tcpNoDelay(true), redis-rs "+
				"set_tcp_nodelay, rueidis without DisableTCPNoDelay, in C setsockopt with TCP_NODELAY. "+
				"Most other libraries set it", format.Name(who.List(2))),
		},
		orElse(inApplication("one-write", "Write a whole request at once (a buffered writer with one flush, or "+
			"writev): then no piece waits for another")),
	}
}

// weighACKs compares such calls with the delayed acknowledgements that the server's network namespace sent.
func (f *Finding) weighACKs(n *facts.Node, calls int64) {
	acks := n.Series(series.DelayedACKs)
	switch {
	case len(acks) == 0:
		f.doubt(recording.SourceHost, 0, "", "whether the server's host delayed acknowledgements was not seen")
	case acks.Growth() >= float64(calls)/2:
		f.support(recording.SourceHost, acks.Growth(), "segments", "the server's network namespace sent %s "+
			"(DelayedACKs) for %d such calls", counted(acks.Growth(), "delayed acknowledgement"), calls)
	default:
		f.doubt(recording.SourceHost, acks.Growth(), "segments", "the server's network namespace sent only %s for %d "+
			"such calls", counted(acks.Growth(), "delayed acknowledgement"), calls)
		f.weaken(len(f.Against)) // two where the sockets were not seen, too
	}
}
