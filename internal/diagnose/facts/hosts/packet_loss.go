package hosts

import (
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// RTOMinNs is the kernel's shortest retransmission timer in nanoseconds; a tail loss probe comes no earlier for a
// single segment.
// Bound: kernel, TCP_RTO_MIN.
const RTOMinNs = 200e6

// MinTimeoutNs is from when on a wait can be that of a retransmission timer: what sees the wait may begin to count
// after the segment was sent.
const MinTimeoutNs = int64(degree.NearlyAll * RTOMinNs)

// PacketLoss is what the sockets at both ends counted of retransmissions.
type PacketLoss struct {
	// ServerSegs is the number of segments that the server's namespace retransmitted.
	ServerSegs float64
	// LostSegs is the number of those that its sockets took for lost. TimerSegs of these a timer found, and not the
	// acknowledgements of what was sent after them.
	LostSegs, TimerSegs float64
	// UnansweredSegs is the number of segments that were retransmitted again and again by sockets that had no
	// acknowledgement until the end. They are not in ServerSegs and LostSegs.
	UnansweredSegs float64
	// OutSegs is the number of segments that the server's namespace sent.
	OutSegs float64
	// SeenOnPort says that sockets at the server's port were seen retransmitting.
	SeenOnPort bool
	// Retransmissions are those that the tap saw.
	Retransmissions Retransmissions
}

// Retransmissions is what the tap saw of segments that were retransmitted on open connections at the server's
// port.
type Retransmissions struct {
	// ByServer is the number that the server retransmitted.
	ByServer int
	// ByClient is the number that clients retransmitted.
	ByClient int
	// Conns is the number of connections.
	Conns int
	// MaxNs is the longest time in nanoseconds from the send before.
	MaxNs int64
}

// findRetransmissions finds those of the node's connections.
func findRetransmissions(n *facts.Node) (r Retransmissions) {
	conns := map[string]bool{}
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) {
		d := recording.DetailOf[recording.RetransmitDetail](e)
		// A retransmitted SYN says that a connection was not accepted; a timer below RTO_MIN is a tail loss probe,
		// mostly spurious.
		if strings.HasPrefix(d.State, "syn") || d.Why == recording.RetransmitTailProbe || e.DurationNs < MinTimeoutNs {
			continue
		}
		if d.From == recording.Server {
			r.ByServer++
		} else {
			r.ByClient++
		}
		conns[d.Client] = true
		r.MaxNs = max(r.MaxNs, e.DurationNs)
	}
	r.Conns = len(conns)
	return r
}

// PacketLossOf is that of the server's network namespace, and of its port.
func PacketLossOf(n *facts.Node) (l PacketLoss) {
	// Retransmitted SYNs are left out: a full accept queue drops them as well as a path that loses packets.
	l.ServerSegs = max(n.Growth(series.RetransSegs)-n.Growth(series.TCPSynRetrans), 0)
	l.LostSegs, l.TimerSegs = lostSegs(n, l.ServerSegs)
	// Of connections on which nothing comes back any more: their peer is gone, or the path has forgotten them. A path
	// that loses packets lets the second or third of them through, or the tenth.
	l.UnansweredSegs = min(max(n.Growth(series.SockUnansweredResends), 0), l.ServerSegs)
	l.ServerSegs, l.LostSegs = l.ServerSegs-l.UnansweredSegs, max(l.LostSegs-l.UnansweredSegs, 0)
	l.TimerSegs = min(l.TimerSegs, l.LostSegs)
	l.OutSegs = n.Growth(series.OutSegs)
	now, _ := n.Series(series.SockRetransmitting).Max()
	total := n.Series(series.SockRetransTotal)
	last, _ := total.Max()
	first, _ := total.Min()
	l.Retransmissions = facts.Once(n, "retransmissions", findRetransmissions)
	l.SeenOnPort = now > 0 || last > first && sameConns(n) || l.Retransmissions.ByServer > 0
	return l
}

// lostSegs is how many of the segments that the server's namespace retransmitted its sockets took for lost: what a
// timer, duplicate acknowledgements or the slow start after a timer retransmitted. The others are tail loss probes, and
// probes of a window that its receiver has closed, which tcp_retransmit_timer sends before it counts a timeout
// (net/ipv4/tcp_timer.c, "Our retransmits become zero probes").
func lostSegs(n *facts.Node, retransmitted float64) (lost, byTimer float64) {
	timeouts := n.Series(series.TCPTimeouts)
	if len(timeouts) == 0 {
		return retransmitted, retransmitted // not watched
	}
	byTimer = max(timeouts.Growth()-n.Growth(series.TCPSynRetrans), 0) +
		n.Growth(series.TCPSlowStartRetrans)
	lost = min(max(retransmitted-SpuriousSegs(n), 0), byTimer+n.Growth(series.TCPFastRetrans))
	return lost, min(byTimer, lost)
}

// SpuriousSegs is how many segments the server's namespace retransmitted though its peers had them, as they report
// (DSACK, RFC 2883). Nobody waited for those.
func SpuriousSegs(n *facts.Node) float64 {
	return max(n.Growth(series.TCPDSACKRecvSegs), n.Growth(series.TCPDSACKRecv))
}

// sameConns reports whether about the same connections were open all the time: only then does the sum over the open
// ones show losses.
func sameConns(n *facts.Node) bool {
	open := n.Series(series.SockEstablished)
	most, _ := open.Max()
	least, _ := open.Min()
	return most-least <= degree.Part*most
}

// WindowLimitedNs is how long in nanoseconds the connection that waited most for its peer's window did so during the
// watch.
func WindowLimitedNs(n *facts.Node) (ns float64) {
	for _, st := range n.Series(series.SockRwndLimitedMax).Steps() { // the value falls when a connection ends
		ns += st.Delta
	}
	return ns
}
