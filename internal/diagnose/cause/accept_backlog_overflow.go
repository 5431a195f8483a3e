package cause

import (
	"fmt"
	"strconv"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// acceptBacklogOverflow: the accept queue is full, and the kernel drops new connections. Callers retry the SYN after
// one second (net/ipv4/tcp_input.c, tcp_conn_request: LINUX_MIB_LISTENOVERFLOWS).
var acceptBacklogOverflow = Cause{
	ID:      "accept-backlog-overflow",
	Explain: explainBacklog,
}

// raisedBacklog is the length of the queue that is advised.
// Bound: kernel, the default of net.core.somaxconn since Linux 5.4.
const raisedBacklog = 4096

func explainBacklog(n *facts.Node) *Finding {
	b := connection.AcceptQueueOf(n)
	counted := len(n.Series(series.ListenOverflows)) > 0
	if counted && !b.DropsAreOwn || !counted && (b.FreshRetransmitted < degree.Several || b.KeptRetransmitted > 0) {
		return nil
	}
	f := finding(n, n.Claim(isConnectLoss))
	if late := connection.DialsOf(n).LateNs; late > 0 {
		f.lose(n, facts.LostOpening, float64(late), connection.SYNTimeoutNs)
	} else if !b.KeptSlow {
		f.loseBeside(n, facts.LostOpening, shareOfDrops(n, b), connection.SYNTimeoutNs)
	}
	f.supportBacklog(b)
	if counted && b.MaxQueue < b.Limit && b.FreshRetransmitted+b.LateDials == 0 {
		f.doubt(recording.SourceHost, b.MaxQueue, "connections",
			"the queue was not seen full, and the drops are counted for all listeners of the network namespace")
	}
	if c := connection.ChurnOf(n); b.Limit >= connection.DefaultBacklog && c.PerSecond >= b.Limit {
		f.weaken(1)
		f.doubt(recording.SourceServer, c.PerSecond, "per second",
			"the queue holds the usual %.0f connections; callers open %.0f per second", b.Limit, c.PerSecond)
	}
	if d := connection.DialsOf(n); d.Late > 0 {
		f.support(recording.SourceTap, float64(d.Late), "connections",
			"%d of %d connections of clients on this host took at least 1 s to open, up to %s; most are of %s", d.Late,
			d.Count, format.Brief(d.MaxLateNs), facts.KeysByValue(d.LateByProgram)[0])
	}
	if b.KeptSlow {
		f.doubt(recording.SourceProbe, 0, "",
			"calls on open connections were slow as well: the root is what keeps the event loop from accepting")
	} else if b.FreshRetransmitted > 0 {
		f.support(recording.SourceProbe, 0, "segments",
			"calls on open connections lost nothing meanwhile: it is not the network path")
	}
	f.blameOpenings(n)
	f.FixSteps = backlogFix(n, b)
	return f
}

// isConnectLoss is the time that a new connection waited for a retransmission.
func isConnectLoss(a account.Account, s account.Segment) bool {
	return a.Call.Conn == "fresh" && s.Actor == account.Network && s.State == account.Retransmit
}

// shareOfDrops estimates the share of the drops in the time of all callers: a drop costs one second, and the calls that
// got through cost what they took.
func shareOfDrops(n *facts.Node, b connection.AcceptQueue) float64 {
	cost := connection.ConnectionCostOf(n)
	dropped := b.Drops * connection.SYNTimeoutNs
	served := n.Growth(series.TotalCommandsProcessed)*float64(cost.CallNs) +
		n.Growth(series.TotalConnectionsReceived)*float64(cost.OpeningNs)
	return dropped / max(dropped+served, 1)
}

func (f *Finding) supportBacklog(b connection.AcceptQueue) {
	if b.Drops > 0 {
		f.support(recording.SourceHost, b.Drops, "drops",
			"the kernel dropped %s: the accept queue was full (ListenOverflows of the server's network namespace)",
			counted(b.Drops, "connection"))
	}
	if b.Limit > 0 {
		f.support(recording.SourceHost, b.MaxQueue, "connections",
			"up to %s waited to be accepted; the limit is %.0f", counted(b.MaxQueue, "connection"), b.Limit)
	}
	if b.FreshRetransmitted > 0 {
		f.support(recording.SourceProbe, float64(b.FreshRetransmitted), "connections",
			"%s had to retransmit the first segments", counted(b.FreshRetransmitted, "probe connection"))
	}
}

func backlogFix(n *facts.Node, b connection.AcceptQueue) (fix []remedy.Step) {
	configured := n.ConfigInt("tcp-backlog")
	somaxconn, _ := n.Series(series.Somaxconn).Last()
	if configured > 0 && configured < raisedBacklog {
		fix = append(fix, remedy.ConfigSet(n, "larger-backlog", "tcp-backlog", strconv.Itoa(raisedBacklog), ""))
	}
	if somaxconn > 0 && somaxconn < raisedBacklog {
		fix = append(fix, remedy.Step{
			ID: "larger-somaxconn", Kind: remedy.Command,
			Text:    "Raise the limit of all accept queues in the server's network namespace: it caps tcp-backlog",
			Command: fmt.Sprintf("sysctl -w net.core.somaxconn=%d", raisedBacklog),
			Undo:    fmt.Sprintf("sysctl -w net.core.somaxconn=%.0f", somaxconn),
			Risk:    "a restart of the host forgets it, unless a file in /etc/sysctl.d keeps it",
			Restart: "the server",
		})
	}
	if b.KeptSlow {
		fix = append(fix, change("free-event-loop", "Find what holds the event loop (see the other findings): no "+
			"backlog is long enough for a server that does not accept"))
	}
	return append(fix, inApplication("keep-connections", "Let callers keep their connections, and reconnect with "+
		"jitter after an error"))
}
