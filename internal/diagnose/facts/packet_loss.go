package facts

import (
	"slices"
	"sort"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Acks is what the kernel source saw of replies to clients at other addresses, of which it may have seen the server's
// end alone. The clients' kernels acknowledge them without their processes: what is late is the path, the client's
// host, or a window that is closed.
type Acknowledgements struct {
	// late ones by what happened meanwhile: segments were retransmitted; the client's window was closed; neither
	Retransmitted, WindowClosed, Other int
	MaxRetransmittedNs, MaxOtherNs     int64
	Conns                              int
	// least round trip of the connection in the middle; 0 where unknown
	MinRTTNs          int64
	LateConns         map[string]bool // by the client's address: those with late ones,
	ClosedWindowConns map[string]bool // and those whose client closed its window, late or not
	OtherBytes        int64           // of the longest of Plain
	OtherClient       string
}

func (n *Node) Acknowledgements() Acknowledgements {
	a := Acknowledgements{LateConns: map[string]bool{}, ClosedWindowConns: map[string]bool{}}
	least := map[string]int64{}
	for _, e := range n.Events(recording.SourceTap, recording.KindAcknowledged) {
		d := recording.DetailOf[recording.AckDetail](e)
		if d.RTTMinNs > 0 {
			least[d.Client] = d.RTTMinNs
		}
		if d.Shut {
			a.ClosedWindowConns[d.Client] = true
		}
		if d.SureNs < d.RTTMinNs+n.Ledger.ThresholdNs {
			continue
		}
		a.LateConns[d.Client] = true
		switch {
		case d.Shut:
			a.WindowClosed++ // what is retransmitted into a closed window is a question
		case d.Resent > 0:
			a.Retransmitted++
			a.MaxRetransmittedNs = max(a.MaxRetransmittedNs, d.SureNs)
		default:
			a.Other++
			if d.SureNs > a.MaxOtherNs {
				a.MaxOtherNs, a.OtherBytes, a.OtherClient = d.SureNs, d.Unacked, d.Client
			}
		}
	}
	var all []int64
	for _, ns := range least {
		all = append(all, ns)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	if a.Conns = len(all); a.Conns > 0 {
		a.MinRTTNs = all[a.Conns/2]
	}
	return a
}

// LostReplies are replies that the kernel source saw the server send, and arrive no earlier than a retransmission timer
// after that. Neither process has a part in it. What a firewall or a queue drops at the server's own host counts there
// as no retransmission, as it was never sent (net/ipv4/tcp_output.c, tcp_write_xmit), and the caller's end repeats a
// request that had arrived: only the time tells.
type LostReplies struct {
	Late int // on their way for RTO_MIN or longer
	// of these, what arrived right after one end had retransmitted what the other had not acknowledged
	Retransmitted int
	LateByLess    int   // replies that were late by less, as a path or a host that holds packets up makes them
	Instants      int   // apart from each other, at which those of Resent arrived
	MaxNs         int64 // longest of Late
}

// Proven: most replies that were late came when a timer had run out, at different times, and hardly any came earlier. A
// host that stands still has its timers run out as well when it goes on, but for all connections at once.
func (r LostReplies) Proven() bool {
	return r.Instants >= minLossInstants && 2*r.Retransmitted >= r.Late && r.Late > r.LateByLess
}

// lostMoments is how often a timer must have brought a reply: a machine that was suspended once or twice looks the same
// that often.
const minLossInstants = 3

// OnItsWay reports whether a segment is that of a reply which was lost, by its length.
func IsLostReply(s account.Segment) bool {
	return s.Actor == account.Network && s.State == account.Back && s.Ns() >= RTOMinNs*9/10
}

func (n *Node) LostReplies() (r LostReplies) {
	resends := map[string][]int64{} // when they were retransmitted
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) {
		if d := recording.DetailOf[recording.RetransmitDetail](e); d.State == "established" &&
			e.DurationNs >= RTOMinNs*9/10 {
			resends[d.Client] = append(resends[d.Client], e.TimeNs+e.DurationNs)
		}
	}
	var moments []int64
	for _, a := range n.Ledger.Slow {
		if a.Call.Node != n.Address || a.Call.Source != recording.SourceTap {
			continue
		}
		for _, s := range a.Segments {
			switch {
			case IsLostReply(s):
				r.Late++
				r.MaxNs = max(r.MaxNs, s.Ns())
				if slices.ContainsFunc(resends[a.Call.Conn], func(at int64) bool {
					return at >= s.FromNs &&
						at <= s.ToNs && s.ToNs-at < n.Ledger.ThresholdNs
				}) {
					r.Retransmitted++
					moments = append(moments, s.ToNs)
				}
			case s.Actor == account.Network && s.State == account.Back && s.Ns() >= n.Ledger.ThresholdNs:
				r.LateByLess++
			}
		}
	}
	slices.Sort(moments)
	last := int64(0)
	for _, at := range moments {
		if r.Instants == 0 || at-last >= RTOMinNs/2 {
			r.Instants, last = r.Instants+1, at
		}
	}
	return r
}

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
	ByServer, ByClient int
	Conns              int
	MaxNs              int64 // longest time from the send before
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
