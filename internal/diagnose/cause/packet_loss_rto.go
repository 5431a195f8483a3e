package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// packetLossRTO: a segment got lost, and with so little in flight only the retransmission timer notices, after 200 ms
// at the earliest (TCP_RTO_MIN), doubling. Catalogue F1.
var packetLossRTO = Cause{
	ID:    "packet-loss-rto",
	Title: "The network loses packets: calls wait for TCP to send again",
	Layer: "network",
	Needs: Needs{
		T0: "retransmissions counted by the probe's own sockets during slow calls (TCP_INFO); calls in steps of 200, " +
			"400, 800 ms",
		T1: "retransmissions of the server's sockets while its main thread sleeps, without those on connections on " +
			"which nothing comes back at all",
		T2: "each retransmission at the server's port: which end sent again, after how long, on which connection, " +
			"inside which calls; replies that arrived only when a timer had run out at one of the ends; replies to " +
			"other hosts that were acknowledged late after it",
	},
	Explain: explainLoss,
}

// rtoMinNs is the kernel's shortest retransmission timer; a tail loss probe comes no earlier for a single segment.
const rtoMinNs = int64(200e6)

// mostlyBusy: a main thread that has work for this part of the time keeps calls waiting itself.
const mostlyBusy = 0.8

// Loss is what the sockets at both ends counted.
type Loss struct {
	Calls      int     // of the probe, during which its socket sent again
	ServerSegs float64 // that the server's namespace sent again
	Lost       float64 // of these, what its sockets took for lost
	// sent again and again by sockets that have had no acknowledgement until the end: not in ServerSegs and Lost
	Dead    float64
	OutSegs float64
	OnPort  bool // sockets at the server's port were seen sending again
	Resent  Resent
}

// Resent is what the kernel source saw of segments that were sent again on open connections at the server's port.
type Resent struct {
	ByServer, ByClient int
	Conns              int
	MaxNs              int64 // longest time from the send before
}

func (n *Node) resent() (r Resent) {
	conns := map[string]bool{}
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) {
		d := recording.DetailOf[recording.RetransmitDetail](e)
		// A SYN that is sent again says that a connection was not let in; a timer below RTO_MIN is a probe of the tail,
		// mostly for nothing.
		if strings.HasPrefix(d.State, "syn") || d.Why == recording.ResentProbe || e.DurationNs < rtoMinNs*9/10 {
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

func (n *Node) loss() (l Loss) {
	for _, e := range n.Events(recording.SourceProbe, recording.KindTCPInfo) {
		d := recording.DetailOf[recording.TCPDetail](e)
		if d.RetransDuring > 0 || d.SynRetransDuring > 0 {
			l.Calls++
		}
	}
	// SYNs that are sent again say that a connection was not let in, which a full accept queue does as well as a path
	// that loses them.
	l.ServerSegs = max(n.Host("net.RetransSegs").Growth()-n.Host("net.TCPSynRetrans").Growth(), 0)
	l.Lost = n.lost(l.ServerSegs)
	l.Dead = min(n.unanswered(), l.ServerSegs)
	l.ServerSegs, l.Lost = l.ServerSegs-l.Dead, max(l.Lost-l.Dead, 0)
	l.OutSegs = n.Host("net.OutSegs").Growth()
	now, _ := n.Host("sock.retransmitting").Max()
	total := n.Host("sock.retrans_total")
	last, _ := total.Max()
	first, _ := total.Min()
	l.Resent = n.resent()
	l.OnPort = now > 0 || last > first && n.settled() || l.Resent.ByServer > 0
	return l
}

// lost is how many of the segments that the server's namespace sent again its sockets took for lost: what a timer,
// duplicate acknowledgements or the slow start after a timer sent again. The other ones are probes of the tail, and
// questions into a window that its receiver has closed, which tcp_retransmit_timer sends before it counts a timeout
// (net/ipv4/tcp_timer.c, "Our retransmits become zero probes").
func (n *Node) lost(sentAgain float64) float64 {
	timeouts := n.Host("net.TCPTimeouts")
	if len(timeouts) < 2 {
		return sentAgain // not watched
	}
	timed := max(timeouts.Growth()-n.Host("net.TCPSynRetrans").Growth(), 0)
	return min(max(sentAgain-n.twice(), 0),
		timed+n.Host("net.TCPFastRetrans").Growth()+n.Host("net.TCPSlowStartRetrans").Growth())
}

// unanswered is how many segments the server's sockets sent again on connections on which nothing comes back any more:
// their peer is gone, or the path has forgotten them. A path that loses packets lets the second or third of them
// through, or the tenth.
func (n *Node) unanswered() float64 { return max(n.Host("sock.unanswered_resends").Growth(), 0) }

// twice is how many segments the server's namespace sent again though its peers had them: they say so (DSACK, RFC
// 2883). Nobody waited for those.
func (n *Node) twice() float64 {
	return max(n.Host("net.TCPDSACKRecvSegs").Growth(), n.Host("net.TCPDSACKRecv").Growth())
}

// probed is how many losses the probes of the tail may have found: those that were no duplicates.
func (n *Node) probed() float64 { return max(n.Host("net.TCPLossProbes").Growth()-n.twice(), 0) }

// settled: the sum over the connections that are open now tells of losses only while they stay the same ones.
func (n *Node) settled() bool {
	open := n.Host("sock.established")
	most, _ := open.Max()
	least, _ := open.Min()
	return most-least <= 10+most/10
}

func explainLoss(n *Node) *Finding {
	l := n.loss()
	overflow := n.overflow().Attributed
	d, known := n.demand()
	// That replies were lost is told from a server that had no time to reply by its main thread.
	// A lost reply is sent again by a probe of the tail, or by a timer.
	back := n.lostReplies()
	replies := (back.proven() || l.OnPort && min(l.ServerSegs-n.twice(), l.Lost+n.probed()) > 0) && !overflow &&
		!(known && d.Wish() > mostlyBusy)
	match := func(a account.Account, s account.Segment) bool {
		switch {
		case s.Actor == account.Network && s.State == account.Retransmit:
			return !(overflow && a.Call.Conn == "fresh")
		case back.proven() && onItsWay(s):
			return true
		case !replies || a.Call.Source != recording.SourceProbe:
			return false
		}
		// A lost reply is sent again by the server: the caller's socket knows nothing of it.
		return isWaiting(s) && s.Actor != account.Server && a.ExcessNs >= rtoMinNs*9/10
	}
	cl := n.Claim(match)
	if !cl.matters() {
		return lossOfOthers(n, l, overflow)
	}
	f := n.finding(cl, 0.9)
	seen := n.Claim(func(a account.Account, s account.Segment) bool {
		return s.State == account.Retransmit &&
			match(a, s)
	})
	if n.Hosted() && (seen.Ns > 0 || replies) {
		f.Confidence = 0.95
	}
	if seen.Ns > 0 {
		how := "TCP_INFO"
		if seen.Users.Calls > 0 {
			how = "seen by the kernel source, or in TCP_INFO of the probe"
		}
		f.support(n.caller(), fmt.Sprintf("%d of %d slow calls had segments sent again meanwhile (%s), up to %s in "+
			"one call", seen.Calls, len(n.Ledger.Slow), how, dur(seen.MaxNs)), float64(seen.Calls), "calls")
	}
	if back.proven() {
		f.supportReplies(back)
	}
	f.supportResent(l.Resent)
	if l.ServerSegs > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("the server's namespace sent %.0f of %.0f segments again "+
			"(RetransSegs), %.2f %%", l.ServerSegs, l.OutSegs, 100*l.ServerSegs/max(l.OutSegs, 1)), l.ServerSegs,
			"segments")
	}
	if known && d.Source == recording.SourceHost && d.Wish() < 0.5 {
		f.support(recording.SourceHost, fmt.Sprintf("the main thread had work only %.0f %% of the time: the calls "+
			"did not wait for the server", d.Wish()*100), d.Wish(), "of the time")
	}
	if !back.proven() { // the kernel sees these at both ends
		f.weighAcks(n)
		f.doubtLoss(n, cl, seen)
	}
	f.Fix, f.See = lossFix, lossSee
	return f
}

func (f *Finding) supportResent(r Resent) {
	if all := r.ByServer + r.ByClient; all > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("on %d connections a segment was sent again after the "+
			"retransmission timer, %d times by the server, %d times by clients of this host, the longest after %s",
			r.Conns, r.ByServer, r.ByClient, dur(r.MaxNs)), float64(all), "segments")
	}
}

// lossOfOthers: the probe's packets come through, those of other callers do not.
func lossOfOthers(n *Node, l Loss, overflow bool) *Finding {
	// A peer that is slow to acknowledge, as one that does not read, is probed with a segment that it may have
	// (net/ipv4/tcp_output.c, tcp_send_loss_probe): where nothing else was sent again, nothing says that a segment was
	// lost, and nobody waited for a timer.
	probesOnly := n.Host("net.TCPLossProbes").Growth() >= l.ServerSegs
	if overflow || !l.OnPort || probesOnly || l.Lost < lossSegments || l.Lost < lossShare*l.OutSegs {
		return nil
	}
	_, callNs, _ := n.prices()
	waited, served := l.Lost*float64(rtoMinNs), n.Growth("total_commands_processed")*float64(callNs)
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: waited / (waited + served), Confidence: 0.8}
	f.support(recording.SourceHost, fmt.Sprintf("the server's namespace sent %.0f of %.0f segments again "+
		"(RetransSegs), %.2f %%; connections at the server's port are among them", l.ServerSegs, l.OutSegs,
		100*l.ServerSegs/max(l.OutSegs, 1)), l.ServerSegs, "segments")
	f.supportResent(l.Resent)
	f.weighAcks(n)
	f.doubt(recording.SourceProbe, "the probe's own connections lost nothing", 0, "segments")
	if l.Dead > 0 {
		f.doubt(recording.SourceHost, fmt.Sprintf("%.0f more were sent again and again on connections on which "+
			"nothing came back: those are dead, which is no loss of single packets", l.Dead), l.Dead, "segments")
	}
	if limited := n.windowLimited(); limited > 0 && l.Lost < l.ServerSegs {
		f.doubt(recording.SourceHost, fmt.Sprintf("%.0f of these were no losses to its sockets, and receivers kept "+
			"their window closed for up to %s (TCP_INFO rwnd_limited): some ask whether it has opened",
			l.ServerSegs-l.Lost, dur(int64(limited))), l.ServerSegs-l.Lost, "segments")
	}
	f.Fix, f.See = lossFix, lossSee
	return f
}

// Bounds of loss without a slow call of the probe: a healthy network loses less than one segment in a thousand.
const (
	lossShare    = 0.001
	lossSegments = 10
)

var (
	lossFix = []string{
		"Find where packets get lost: ethtool -S DEV | grep -E 'drop|err|allowance', ip -s link, nft list ruleset, " +
			"and conntrack -S at both ends; in a cloud the instance's bandwidth and packets-per-second allowances",
		"Until then: ip route change … rto_min 20ms on a network whose round trip is below 1 ms makes each loss cost " +
			"20 ms in place of 200 ms",
	}
	lossSee = []string{
		"https://www.rfc-editor.org/rfc/rfc6298",
		"https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/TroubleshootingConnections.html",
	}
)

// doubtLoss says where the loss of replies is inferred, and where only new connections lost segments.
func (f *Finding) doubtLoss(n *Node, cl, seen Claim) {
	if cl.Ns > 2*seen.Ns {
		f.doubt(recording.SourceProbe, "in most of these calls the caller's socket sent nothing again: that the "+
			"reply was lost follows from the server's counters", float64(cl.Calls-seen.Calls), "calls")
		f.Confidence -= 0.03
	}
	if b := n.overflow(); b.FreshLost > 0 && b.KeptLost == 0 && cl.Ns <= 2*seen.Ns {
		f.doubt(recording.SourceProbe, "only new connections lost segments, open ones none: a full accept queue or a "+
			"firewall does that", float64(b.FreshLost), "connections")
		f.Confidence -= 0.35
	}
}
