package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// packetLossRTO: a segment got lost, and with so little in flight only the retransmission timer notices, after 200 ms
// at the earliest (TCP_RTO_MIN), doubling.
var packetLossRTO = Cause{
	ID:    "packet-loss-rto",
	Title: "The network loses packets: calls wait for TCP to retransmit",
	Layer: "network",
	Needs: Needs{
		T0: "retransmissions counted by the probe's own sockets during slow calls (TCP_INFO); calls in steps of 200, " +
			"400, 800 ms",
		T1: "retransmissions of the server's sockets while its main thread sleeps, without those on connections on " +
			"which nothing comes back at all",
		T2: "each retransmission at the server's port: which end retransmitted, after how long, on which connection, " +
			"inside which calls; replies that arrived only when a timer had run out at one of the ends; replies to " +
			"other hosts that were acknowledged late after it",
	},
	Explain: explainLoss,
}

// mostlyBusy: a main thread that has work for this part of the time keeps calls waiting itself.
const mostlyBusy = 0.8

// probed is how many losses the probes of the tail may have found: those that were no duplicates.
func probed(n *facts.Node) float64 {
	return max(n.Host("net.TCPLossProbes").Growth()-n.SpuriousSegs(), 0)
}

func explainLoss(n *facts.Node) *Finding {
	l := n.PacketLoss()
	overflow := n.AcceptQueue().DropsAreOwn
	d, known := n.Demand()
	// That replies were lost is told from a server that had no time to reply by its main thread.
	// A lost reply is retransmitted by a probe of the tail, or by a timer.
	back := n.LostReplies()
	replies := (back.Proven() || l.SeenOnPort && min(l.ServerSegs-n.SpuriousSegs(), l.LostSegs+probed(n)) > 0) &&
		!overflow &&
		!(known && d.Total() > mostlyBusy)
	match := func(a account.Account, s account.Segment) bool {
		switch {
		case s.Actor == account.Network && s.State == account.Retransmit:
			return !(overflow && a.Call.Conn == "fresh")
		case back.Proven() && facts.IsLostReply(s):
			return true
		case !replies || a.Call.Source != recording.SourceProbe:
			return false
		}
		// A lost reply is retransmitted by the server: the caller's socket knows nothing of it.
		return facts.IsUnexplainedWait(s) && s.Actor != account.Server && a.ExcessNs >= facts.RTOMinNs*9/10
	}
	cl := n.Claim(match)
	if !cl.Matters() {
		return lossOfOthers(n, l, overflow)
	}
	f := finding(n, cl, 0.9)
	seen := n.Claim(func(a account.Account, s account.Segment) bool {
		return s.State == account.Retransmit &&
			match(a, s)
	})
	if n.HostWatched() && (seen.Ns > 0 || replies) {
		f.Confidence = 0.95
	}
	if seen.Ns > 0 {
		how := "TCP_INFO"
		if seen.Users.Calls > 0 {
			how = "seen by the kernel source, or in TCP_INFO of the probe"
		}
		f.support(n.CallSource(), fmt.Sprintf("%d of %d slow calls had segments retransmitted meanwhile (%s), up to "+
			"%s "+
			"in "+
			"one call", seen.Calls, len(n.Ledger.Slow), how, facts.Dur(seen.MaxNs)), float64(seen.Calls), "calls")
	}
	if back.Proven() {
		f.supportReplies(back)
	}
	f.supportResent(l.Retransmissions)
	if l.ServerSegs > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("the server's namespace sent %.0f of %.0f segments again "+
			"(RetransSegs), %.2f %%", l.ServerSegs, l.OutSegs, 100*l.ServerSegs/max(l.OutSegs, 1)), l.ServerSegs,
			"segments")
	}
	if known && d.Source == recording.SourceHost && d.Total() < 0.5 {
		f.support(recording.SourceHost, fmt.Sprintf("the main thread had work only %.0f %% of the time: the calls "+
			"did not wait for the server", d.Total()*100), d.Total(), "of the time")
	}
	if !back.Proven() { // the kernel sees these at both ends
		f.weighAcks(n)
		f.doubtLoss(n, cl, seen)
	}
	f.Fix, f.See = lossFix, lossSee
	return f
}

func (f *Finding) supportResent(r facts.Retransmissions) {
	if all := r.ByServer + r.ByClient; all > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("on %d connections a segment was retransmitted after the "+
			"retransmission timer, %d times by the server, %d times by clients of this host, the longest after %s",
			r.Conns, r.ByServer, r.ByClient, facts.Dur(r.MaxNs)), float64(all), "segments")
	}
}

// lossOfOthers: the probe's packets come through, those of other callers do not.
func lossOfOthers(n *facts.Node, l facts.PacketLoss, overflow bool) *Finding {
	// A peer that is slow to acknowledge, as one that does not read, is probed with a segment that it may have
	// (net/ipv4/tcp_output.c, tcp_send_loss_probe): where nothing else was retransmitted, nothing says that a segment
	// was lost, and nobody waited for a timer.
	probesOnly := n.Host("net.TCPLossProbes").Growth() >= l.ServerSegs
	if overflow || !l.SeenOnPort || probesOnly || l.LostSegs < lossSegments || l.LostSegs < lossShare*l.OutSegs {
		return nil
	}
	callNs := n.ConnectionCost().CallNs
	waited, served := l.LostSegs*float64(facts.RTOMinNs), n.Growth("total_commands_processed")*float64(callNs)
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: waited / (waited + served), Confidence: 0.8}
	f.support(recording.SourceHost, fmt.Sprintf("the server's namespace sent %.0f of %.0f segments again "+
		"(RetransSegs), %.2f %%; connections at the server's port are among them", l.ServerSegs, l.OutSegs,
		100*l.ServerSegs/max(l.OutSegs, 1)), l.ServerSegs, "segments")
	f.supportResent(l.Retransmissions)
	f.weighAcks(n)
	f.doubt(recording.SourceProbe, "the probe's own connections lost nothing", 0, "segments")
	if l.UnansweredSegs > 0 {
		f.doubt(recording.SourceHost, fmt.Sprintf("%.0f more were retransmitted again and again on connections on "+
			"which "+
			"nothing came back: those are dead, which is no loss of single packets", l.UnansweredSegs),
			l.UnansweredSegs, "segments")
	}
	if limited := n.WindowLimitedNs(); limited > 0 && l.LostSegs < l.ServerSegs {
		f.doubt(recording.SourceHost, fmt.Sprintf("%.0f of these were no losses to its sockets, and receivers kept "+
			"their window closed for up to %s (TCP_INFO rwnd_limited): some ask whether it has opened",
			l.ServerSegs-l.LostSegs, facts.Dur(int64(limited))), l.ServerSegs-l.LostSegs, "segments")
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
func (f *Finding) doubtLoss(n *facts.Node, cl, seen facts.Claim) {
	if cl.Ns > 2*seen.Ns {
		f.doubt(recording.SourceProbe, "in most of these calls the caller's socket sent nothing again: that the "+
			"reply was lost follows from the server's counters", float64(cl.Calls-seen.Calls), "calls")
		f.Confidence -= 0.03
	}
	if b := n.AcceptQueue(); b.FreshRetransmitted > 0 && b.KeptRetransmitted == 0 && cl.Ns <= 2*seen.Ns {
		f.doubt(recording.SourceProbe, "only new connections lost segments, open ones none: a full accept queue or a "+
			"firewall does that", float64(b.FreshRetransmitted), "connections")
		f.Confidence -= 0.35
	}
}

// weighAcks sets late acknowledgements with segments that were retransmitted against those without.
func (f *Finding) weighAcks(n *facts.Node) {
	a := n.Acknowledgements()
	if a.Retransmitted > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d replies to clients at other addresses were acknowledged late, "+
			"up to %s after they were sent, and segments were retransmitted meanwhile", a.Retransmitted,
			facts.Dur(a.MaxRetransmittedNs)),
			float64(a.Retransmitted), "replies")
	}
	if a.Other > a.Retransmitted {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d replies to clients at other addresses were acknowledged late "+
			"with nothing retransmitted, the worst %s after %d bytes were on their way to %s: a path that is slow or "+
			"keeps packets waiting, or a client's host",
			a.Other, facts.Dur(a.MaxOtherNs), a.OtherBytes, a.OtherClient), float64(a.Other), "replies")
	}
}

func (f *Finding) supportReplies(r facts.LostReplies) {
	f.support(recording.SourceTap, fmt.Sprintf("%d replies arrived %s or later after the server had sent them, up to "+
		"%s; %d of them right after one end had retransmitted what was not acknowledged: they were lost on their way "+
		"to "+
		"the caller",
		r.Late, facts.Dur(facts.RTOMinNs*9/10), facts.Dur(r.MaxNs), r.Retransmitted), float64(r.Late), "replies")
}
