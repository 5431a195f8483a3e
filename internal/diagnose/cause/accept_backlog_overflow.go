package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// acceptBacklogOverflow: the queue of connections that wait for accept is full, and the kernel drops what comes;
// callers try again after a second (net/ipv4/tcp_input.c, tcp_conn_request: LINUX_MIB_LISTENOVERFLOWS).
var acceptBacklogOverflow = Cause{
	ID:    "accept-backlog-overflow",
	Title: "The queue of new connections overflows: the kernel drops them, and callers try again a second later",
	Layer: "limits",
	Needs: Needs{
		T0: "new connections whose SYN had to be retransmitted (connect takes 1, 2, 3 s) while open connections lose " +
			"nothing",
		T1: "ListenOverflows growing, and the accept queue at its limit",
		T2: "connections of clients on this host that took a second and more to be made, by process, as many as were " +
			"dropped at most",
	},
	Explain: explainBacklog,
}

func explainBacklog(n *facts.Node) *Finding {
	b := n.AcceptQueue()
	counted := len(n.Host("net.ListenOverflows")) > 0
	if counted && !b.DropsAreOwn || !counted && (b.FreshRetransmitted < 2 || b.KeptRetransmitted > 0) {
		return nil
	}
	f := finding(n, n.Claim(isConnectLoss), 0.95)
	if !counted {
		f.Confidence = 0.6
		if limit := n.ConfigInt("tcp-backlog"); limit > 0 && limit <= 128 {
			f.Confidence = 0.7
		}
	}
	if !b.KeptSlow {
		f.ExcessShare = max(f.ExcessShare, shareOfDrops(n, b))
	}
	f.supportBacklog(b)
	if counted && b.MaxQueue < b.Limit && b.FreshRetransmitted+b.LateDials == 0 {
		f.Confidence *= 0.85
		f.doubt(recording.SourceHost, "the queue was not seen full, and the drops are counted for all listeners of "+
			"the network namespace together", b.MaxQueue, "connections")
	}
	if c := n.Churn(); c.Many() && b.Limit >= facts.DefaultBacklog && c.PerSecond >= b.Limit {
		f.Confidence *= 0.6
		f.doubt(recording.SourceServer, fmt.Sprintf("the queue has room for %.0f, as usual; callers open %.0f "+
			"connections per second", b.Limit, c.PerSecond), c.PerSecond, "per second")
	}
	f.supportDials(n)
	if b.KeptSlow {
		f.Confidence *= 0.8
		f.doubt(recording.SourceProbe, "calls on open connections were held up as well: what keeps the event loop "+
			"from accepting is the root of it", 0, "")
	} else if b.FreshRetransmitted > 0 {
		f.support(recording.SourceProbe, "calls on open connections lost nothing meanwhile: it is not the path", 0,
			"segments")
	}
	f.Fix = backlogFix(n, b)
	f.See = []string{
		"https://www.kernel.org/doc/html/latest/networking/ip-sysctl.html",
		"https://redis.io/docs/latest/operate/oss_and_stack/management/config-file/",
	}
	return f
}

// supportDials says how long the clients of this host took to connect, where a SYN had to be retransmitted.
func (f *Finding) supportDials(n *facts.Node) {
	if d := n.Dials(); d.Late > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d of %d connections of clients on this host took a second and "+
			"more, up to %s, most of %s", d.Late, d.Count, facts.Dur(d.MaxLateNs),
			facts.KeysByValue(d.LateByProgram)[0]), float64(d.Late),
			"connections")
	}
}

// isConnectLoss is time that a new connection waited for a segment to be retransmitted.
func isConnectLoss(a account.Account, s account.Segment) bool {
	return a.Call.Conn == "fresh" && s.Actor == account.Network && s.State == account.Retransmit
}

// shareOfDrops estimates what part of all callers' time the drops are: a second each, against what the calls that came
// through took.
func shareOfDrops(n *facts.Node, b facts.AcceptQueue) float64 {
	cost := n.ConnectionCost()
	dropped := b.Drops * facts.SYNTimeoutNs
	served := n.Growth("total_commands_processed")*float64(cost.CallNs) +
		n.Growth("total_connections_received")*float64(cost.OpeningNs)
	if dropped == 0 {
		return 0
	}
	return dropped / (dropped + served)
}

func (f *Finding) supportBacklog(b facts.AcceptQueue) {
	if b.Drops > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("the kernel dropped %.0f connections because the queue was full "+
			"(ListenOverflows of the server's network namespace)", b.Drops), b.Drops, "drops")
	}
	if b.Limit > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("up to %.0f connections waited to be accepted, where %.0f may",
			b.MaxQueue, b.Limit), b.MaxQueue, "connections")
	}
	if b.FreshRetransmitted > 0 {
		f.support(recording.SourceProbe, fmt.Sprintf("%d of the probe's own connections had to send their first "+
			"segments again", b.FreshRetransmitted), float64(b.FreshRetransmitted), "connections")
	}
}

func backlogFix(n *facts.Node, b facts.AcceptQueue) []string {
	configured := n.ConfigInt("tcp-backlog")
	somaxconn, _ := n.Host("net.somaxconn").Last()
	var fix []string
	if configured > 0 && configured < 4096 {
		fix = append(fix, fmt.Sprintf("tcp-backlog 4096 in the server's configuration (it is %d; it takes a restart)",
			configured))
	}
	if somaxconn > 0 && somaxconn < 4096 {
		fix = append(fix, fmt.Sprintf("sysctl -w net.core.somaxconn=4096 in the server's network namespace (it is "+
			"%.0f, and bounds tcp-backlog)", somaxconn))
	}
	if b.KeptSlow {
		fix = append(fix, "Find what held the event loop (the other findings): no backlog is long enough for a "+
			"server that does not accept")
	}
	return append(fix, "Let callers keep their connections, and come back with jitter after an error instead of all "+
		"at once")
}
