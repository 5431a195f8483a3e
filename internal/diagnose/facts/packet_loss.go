package facts

import (
	"strings"

	"slowpath/internal/recording"
)

// RtoMinNs is the kernel's shortest retransmission timer; a tail loss probe comes no earlier for a single segment.
const RTOMinNs = int64(200e6)

// PacketLoss is what the sockets at both ends counted.
type PacketLoss struct {
	Calls      int     // of the probe, during which its socket retransmitted
	ServerSegs float64 // that the server's namespace retransmitted
	LostSegs   float64 // of these, what its sockets took for lost
	// retransmitted again and again by sockets that have had no acknowledgement until the end: not in ServerSegs and
	// Lost
	UnansweredSegs  float64
	OutSegs         float64
	SeenOnPort      bool // sockets at the server's port were seen sending again
	Retransmissions Retransmissions
}

// Resent is what the kernel source saw of segments that were retransmitted on open connections at the server's port.
type Retransmissions struct {
	ByServer int
	ByClient int
	Conns    int
	MaxNs    int64 // longest time from the send before
}

func (n *Node) retransmissions() (r Retransmissions) {
	conns := map[string]bool{}
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) {
		d := recording.DetailOf[recording.RetransmitDetail](e)
		// A SYN that is retransmitted says that a connection was not let in; a timer below RTO_MIN is a probe of the
		// tail, mostly for nothing.
		if strings.HasPrefix(d.State, "syn") || d.Why == recording.ResentProbe || e.DurationNs < RTOMinNs*9/10 {
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

func (n *Node) PacketLoss() (l PacketLoss) {
	for _, e := range n.Events(recording.SourceProbe, recording.KindTCPInfo) {
		d := recording.DetailOf[recording.TCPDetail](e)
		if d.RetransDuring > 0 || d.SynRetransDuring > 0 {
			l.Calls++
		}
	}
	// SYNs that are retransmitted say that a connection was not let in, which a full accept queue does as well as a
	// path that loses them.
	l.ServerSegs = max(n.Host("net.RetransSegs").Growth()-n.Host("net.TCPSynRetrans").Growth(), 0)
	l.LostSegs = n.lostSegs(l.ServerSegs)
	l.UnansweredSegs = min(n.unansweredSegs(), l.ServerSegs)
	l.ServerSegs, l.LostSegs = l.ServerSegs-l.UnansweredSegs, max(l.LostSegs-l.UnansweredSegs, 0)
	l.OutSegs = n.Host("net.OutSegs").Growth()
	now, _ := n.Host("sock.retransmitting").Max()
	total := n.Host("sock.retrans_total")
	last, _ := total.Max()
	first, _ := total.Min()
	l.Retransmissions = n.retransmissions()
	l.SeenOnPort = now > 0 || last > first && n.sameConns() || l.Retransmissions.ByServer > 0
	return l
}

// lost is how many of the segments that the server's namespace retransmitted its sockets took for lost: what a timer,
// duplicate acknowledgements or the slow start after a timer retransmitted. The other ones are probes of the tail, and
// questions into a window that its receiver has closed, which tcp_retransmit_timer sends before it counts a timeout
// (net/ipv4/tcp_timer.c, "Our retransmits become zero probes").
func (n *Node) lostSegs(sentAgain float64) float64 {
	timeouts := n.Host("net.TCPTimeouts")
	if len(timeouts) < 2 {
		return sentAgain // not watched
	}
	timed := max(timeouts.Growth()-n.Host("net.TCPSynRetrans").Growth(), 0)
	return min(max(sentAgain-n.SpuriousSegs(), 0),
		timed+n.Host("net.TCPFastRetrans").Growth()+n.Host("net.TCPSlowStartRetrans").Growth())
}

// unansweredOpens is how many segments the server's sockets retransmitted on connections on which nothing comes back
// any more: their peer is gone, or the path has forgotten them. A path that loses packets lets the second or third of
// them through, or the tenth.
func (n *Node) unansweredSegs() float64 { return max(n.Host("sock.unanswered_resends").Growth(), 0) }

// Twice is how many segments the server's namespace retransmitted though its peers had them: they say so (DSACK, RFC
// 2883). Nobody waited for those.
func (n *Node) SpuriousSegs() float64 {
	return max(n.Host("net.TCPDSACKRecvSegs").Growth(), n.Host("net.TCPDSACKRecv").Growth())
}

// settled: the sum over the connections that are open now tells of losses only while they stay the same ones.
func (n *Node) sameConns() bool {
	open := n.Host("sock.established")
	most, _ := open.Max()
	least, _ := open.Min()
	return most-least <= 10+most/10
}

// WindowLimited is how long in nanoseconds the connection that was worst off waited for its peer's window during the
// watch.
func (n *Node) WindowLimitedNs() (ns float64) {
	for _, st := range n.Host("sock.rwnd_limited_max_ns").Steps() { // falls are connections that ended
		ns += st.Delta
	}
	return ns
}
