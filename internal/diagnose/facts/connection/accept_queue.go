package connection

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// AcceptQueue is what is known of the queue of a server's listening socket: connections that the kernel has made and
// the server has not accepted yet.
type AcceptQueue struct {
	// Drops is the number of connections that were dropped since a queue was full, in the whole network namespace.
	Drops float64
	// MaxQueue is the largest length of the queue that was seen.
	MaxQueue float64
	// Limit is the length at which the queue is full; 0 where it is unknown.
	Limit float64
	// FreshRetransmitted is the number of the probe's new connections that had to retransmit.
	FreshRetransmitted int
	// KeptRetransmitted is the number of the probe's calls on open connections that had to retransmit.
	KeptRetransmitted int
	// LateDials is the number of connections of clients on this host whose SYN was retransmitted before they were made.
	LateDials int
	// KeptSlow says that more than 10 % of the probe's calls on its kept connection were slow: the event loop itself
	// was held up, and accepted nobody for that reason.
	KeptSlow bool
	// DropsAreOwn says that the drops are this server's, and not another's in its network namespace.
	DropsAreOwn bool
}

// AcceptQueueOf gathers the evidence of an overflow. ListenOverflows counts for the whole network namespace; that the
// drops are this server's shows in its own queue, or in the probe's own connections.
func AcceptQueueOf(n *facts.Node) AcceptQueue { return facts.Once(n, "accept queue", findAcceptQueue) }

func findAcceptQueue(n *facts.Node) AcceptQueue {
	b := AcceptQueue{Drops: n.Growth(series.ListenOverflows)}
	b.MaxQueue, _ = n.Series(series.ListenQueue).Max()
	b.Limit, _ = n.Series(series.ListenBacklog).Last()
	for _, e := range n.Events(recording.SourceProbe, recording.KindTCPInfo) {
		d := recording.DetailOf[recording.TCPDetail](e)
		switch {
		case d.SynRetransDuring > 0, d.RetransDuring > 0 && d.Conn == "fresh":
			b.FreshRetransmitted++
		case d.RetransDuring > 0:
			b.KeptRetransmitted++
		}
	}
	slow := 0
	for _, a := range n.Ledger.Slow {
		if a.Call.Node == n.Address && a.Call.Source == recording.SourceProbe && a.Call.Conn == "kept" {
			slow++
		}
	}
	kept, _ := n.Ledger.Path(n.Address, "kept")
	b.KeptSlow = float64(slow) > degree.Part*float64(kept.Calls)
	full := b.Limit > 0 && b.MaxQueue >= b.Limit
	// A queue this short fills and drains between two polls; then the drops are attributed to it only if as many
	// connections come per second, and nothing else is lost.
	short := b.Limit > 0 && b.Limit < DefaultBacklog && b.MaxQueue >= b.Limit/2 && ChurnOf(n).PerSecond >= b.Limit
	// Each late connection was dropped once at least. A path that loses segments loses those of open connections, too.
	b.LateDials = DialsOf(n).Late
	late := b.LateDials > 0 && float64(b.LateDials) <= b.Drops
	opening := float64(b.FreshRetransmitted + b.LateDials)
	b.DropsAreOwn = b.Drops > 0 && (full || (b.FreshRetransmitted > 0 || short || late) &&
		float64(b.KeptRetransmitted) <= degree.Part*opening)
	return b
}

// DefaultBacklog is the smallest default length of the queue that servers and kernels have had (somaxconn 128 before
// Linux 5.4; tcp-backlog 511).
// Bound: kernel, SOMAXCONN before Linux 5.4.
const DefaultBacklog = 128
