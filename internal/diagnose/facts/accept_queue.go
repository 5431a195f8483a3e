package facts

import (
	"slowpath/internal/recording"
)

// Backlog is what is known of the queue of a listening socket.
type AcceptQueue struct {
	Drops              float64 // in the whole network namespace
	MaxQueue           float64
	Limit              float64
	FreshRetransmitted int  // connections of the probe that had to retransmit
	KeptRetransmitted  int  // calls on open connections that had to
	LateDials          int  // connections of clients on this host whose SYN was retransmitted before they were made
	KeptSlow           bool // the loop itself was held up: then that is why nobody was let in
	DropsAreOwn        bool // the drops are this server's
}

// Overflow gathers the evidence. ListenOverflows counts for the whole network namespace; that the drops are this
// server's shows in its own queue, or in the probe's own connections.
func (n *Node) AcceptQueue() AcceptQueue {
	b := AcceptQueue{Drops: n.Host("net.ListenOverflows").Growth()}
	b.MaxQueue, _ = n.Host("listen.queue").Max()
	b.Limit, _ = n.Host("listen.backlog").Last()
	for _, e := range n.Events(recording.SourceProbe, recording.KindTCPInfo) {
		d := recording.DetailOf[recording.TCPDetail](e)
		switch {
		case d.SynRetransDuring > 0, d.RetransDuring > 0 && d.Conn == "fresh":
			b.FreshRetransmitted++
		case d.RetransDuring > 0:
			b.KeptRetransmitted++
		}
	}
	slow, kept := 0, 0
	for _, a := range n.Ledger.Slow {
		if a.Call.Node == n.Address && a.Call.Source == recording.SourceProbe && a.Call.Conn == "kept" {
			slow++
		}
	}
	if p, ok := n.Ledger.Path(n.Address, "kept"); ok {
		kept = p.Calls
	}
	b.KeptSlow = slow*10 > kept
	full := b.Limit > 0 && b.MaxQueue >= b.Limit
	// A queue this short fills and drains between two looks at it; then it takes many newcomers, and no other loss, to
	// lay the drops on it.
	short := b.Limit > 0 && b.Limit < DefaultBacklog && b.MaxQueue >= b.Limit/2 && n.Churn().Many()
	// Each connection that came late was dropped once at least.
	b.LateDials = n.Dials().Late
	late := b.LateDials > 0 && float64(b.LateDials) <= b.Drops
	b.DropsAreOwn = b.Drops > 0 && (full || (b.FreshRetransmitted > 0 || short || late) && b.KeptRetransmitted == 0)
	return b
}

// UsualBacklog is the least that servers and kernels have had as their default (somaxconn 128 before Linux 5.4;
// tcp-backlog 511).
const DefaultBacklog = 128
