package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// nagleDelayedACK: a sender without TCP_NODELAY writes a request in two writes. Its kernel holds the second until the
// first is acknowledged (RFC 896); the other side delays that acknowledgement, to send it with a reply.
var nagleDelayedACK = Cause{
	ID:    "nagle-delayed-ack",
	Title: "Clients without TCP_NODELAY send a request in pieces: the last waits 40 ms for the ACK of the first",
	Layer: "network",
	Needs: Needs{
		T0: "nothing: the probe sends each request at once",
		T1: "delayed acknowledgements (DelayedACKs) about as frequent as such calls",
		T2: "calls with a request that left 40 ms after its last byte was written, on a path that takes much less",
	},
	Explain: explainNagle,
}

const (
	// The delayed acknowledgement comes after 40 ms (TCP_DELACK_MIN of include/net/tcp.h) or up to a tick of the timer
	// later, 10 ms at HZ=100.
	delackMinNs = int64(39e6)
	delackMaxNs = int64(51e6)
	// steadyPart of the seconds in which a connection's calls take that long on average.
	steadyPart  = 0.8
	nagledCalls = 10
)

// delayed reports whether a time is that of a delayed acknowledgement.
func delayed(ns int64) bool { return ns >= delackMinNs && ns <= delackMaxNs }

// delayedOut is the time of a call from the write of its request to its arrival, if it is that of a delayed
// acknowledgement. Time when the process at either end did not run does not count: the kernels do this.
func delayedOut(a account.Account) int64 {
	if out := a.In(account.Network, account.Out); delayed(out) && a.In(account.Network, account.Retransmit) == 0 {
		return out
	}
	return 0
}

// nagledConns are connections on which all calls take as long as a delayed acknowledgement.
type nagledConns struct {
	conns    []facts.ConnTimeline
	calls    int64
	excessNs int64
}

func nagled(n *facts.Node, baselineNs int64) (g nagledConns) {
	for _, c := range n.Timelines() {
		if c.Calls < nagledCalls {
			continue
		}
		steady, used := 0, 0
		for _, s := range c.Steps {
			if s.Calls > 0 {
				used++
				if delayed(s.InFlightNs / s.Calls) {
					steady++
				}
			}
		}
		if used > 0 && float64(steady) >= steadyPart*float64(used) {
			g.conns = append(g.conns, c)
			g.calls += c.Calls
			g.excessNs += max(0, c.InFlightNs-c.Calls*baselineNs)
		}
	}
	return g
}

func explainNagle(n *facts.Node) *Finding {
	baseline := int64(0)
	if kept, ok := n.Ledger.Path(n.Address, "kept"); ok {
		baseline = kept.P50Ns
	}
	if baseline*4 >= delackMinNs {
		return nil // on a path as slow as that, 40 ms prove nothing
	}
	who, ops := facts.NameCounts{}, facts.NameCounts{}
	cl := n.TapClaim(func(a account.Account) int64 {
		ns := delayedOut(a)
		if ns > 0 {
			who[facts.ClientLabel(a.Call.Conn, a.Call.Client)]++
			ops[a.Call.Op]++
		}
		return ns
	})
	g := nagled(n, baseline)
	if cl.Calls < facts.HealthyMinCalls && len(g.conns) == 0 {
		return nil
	}
	f := finding(n, cl, 0.9)
	if cl.Calls >= facts.HealthyMinCalls {
		f.support(recording.SourceTap, float64(cl.Calls), "calls",
			"%d of %d slow calls (%s) arrived 40 ms after their last byte was written, with nothing retransmitted: %s",
			cl.Calls, len(n.Ledger.Slow), ops.List(3), who.List(3))
	}
	calls := int64(cl.Calls)
	if len(g.conns) > 0 {
		calls = max(calls, g.calls)
		for _, c := range g.conns {
			who[c.Label()] += int(c.Calls)
		}
		if share := float64(g.excessNs) / facts.TotalInFlightNs(n.Timelines()); share > f.ExcessShare {
			f.lose(n, facts.LostInCalls, max(float64(g.excessNs-cl.Ns), 0))
			f.ExcessShare, f.SlowCalls = share, 0 // of all waiting of callers, not of the slow calls alone
		}
		f.support(recording.SourceTap, float64(g.meanNs()), "ns",
			"%s with %s per call in every second (%d calls), others take %s: %s", counted(len(g.conns), "connection"),
			format.Brief(g.meanNs()), g.calls, format.Brief(baseline), who.List(3))
	}
	f.weighACKs(n, calls)
	if d, ok := n.Demand(); ok && d.Measured && d.Total() < maxIdleDemand {
		f.support(d.Source, d.Total(), "of the time",
			"the server was busy only %.0f %% of the time: it did not make them wait", d.Total()*100)
	}
	f.Fix = []string{
		fmt.Sprintf("Set TCP_NODELAY on the connections of %s, and on proxies on the path: Lettuce < 6.0 "+
			"SocketOptions.tcpNoDelay(true); redis-rs set_tcp_nodelay; rueidis DisableTCPNoDelay must be off; "+
			"in C setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, …). Most other libraries set it.", who.List(2)),
		"Write a whole request at once (a buffered writer with one flush, or writev): then no piece waits for another.",
	}
	f.See = []string{
		"https://www.rfc-editor.org/rfc/rfc896", "https://man7.org/linux/man-pages/man7/tcp.7.html",
		"https://github.com/dragonflydb/dragonfly/pull/1910",
	}
	return f
}

func (g nagledConns) meanNs() int64 {
	ns := int64(0)
	for _, c := range g.conns {
		ns += c.InFlightNs
	}
	return ns / max(g.calls, 1)
}

// weighACKs compares such calls with the delayed acknowledgements that the server's network namespace sent.
func (f *Finding) weighACKs(n *facts.Node, calls int64) {
	acks := n.Host("net.DelayedACKs")
	switch {
	case len(acks) == 0:
		f.Confidence -= 0.15
		f.doubt(recording.SourceHost, 0, "", "whether the server's host delayed acknowledgements was not seen")
	case acks.Growth() >= float64(calls)/2:
		f.Confidence += 0.06
		f.support(recording.SourceHost, acks.Growth(), "segments",
			"the server's network namespace sent %s (DelayedACKs) for %d such calls",
			counted(acks.Growth(), "delayed acknowledgement"), calls)
	default:
		f.Confidence -= 0.4
		f.doubt(recording.SourceHost, acks.Growth(), "segments",
			"the server's network namespace sent only %s for %d such calls",
			counted(acks.Growth(), "delayed acknowledgement"), calls)
	}
}
