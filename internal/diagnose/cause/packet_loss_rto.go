package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// packetLossRTO: a segment was lost. With so little in flight only the retransmission timer notices it, after at least
// 200 ms (TCP_RTO_MIN), doubling.
var packetLossRTO = Cause{
	ID:      "packet-loss-rto",
	Changes: []string{"queueing discipline", "nftables rules", "route"},
	Explain: explainLoss,
}

// probed is how many losses tail loss probes may have found: those that were no duplicates.
func probed(n *facts.Node) float64 {
	return max(n.Growth(series.TCPLossProbes)-hosts.SpuriousSegs(n), 0)
}

func explainLoss(n *facts.Node) *Finding {
	if limits := hosts.SizeLimits(n); len(limits) > 0 {
		return blackHole(n, limits)
	}
	l := hosts.PacketLossOf(n)
	overflow := connection.AcceptQueueOf(n).DropsAreOwn
	d, known := mainthread.DemandOf(n)
	// The main thread's idle time distinguishes lost replies from a server that had no time to reply.
	// A lost reply is retransmitted by a tail loss probe, or by a timer.
	back := connection.LostRepliesOf(n)
	replies := (back.Proven() || l.SeenOnPort && min(l.ServerSegs-hosts.SpuriousSegs(n), l.LostSegs+probed(n)) > 0) &&
		!overflow && !(known && d.Total() >= facts.SaturatedDemand)
	match := func(a account.Account, s account.Segment) bool {
		switch {
		case s.Actor == account.Network && s.State == account.Retransmit:
			return !(overflow && a.Call.Conn == "fresh")
		case back.Proven() && connection.IsLostReply(s):
			return true
		case !replies || a.Call.Source != recording.SourceProbe:
			return false
		}
		// A lost reply is retransmitted by the server: the caller's socket does not count it.
		return facts.IsUnexplainedWait(s) && s.Actor != account.Server && a.ExcessNs >= hosts.MinTimeoutNs
	}
	cl := n.Claim(match)
	if !cl.Matters() {
		return lossOfOthers(n, l, overflow)
	}
	f := finding(n, cl)
	seen := n.Claim(func(a account.Account, s account.Segment) bool {
		return s.State == account.Retransmit && match(a, s)
	})
	if seen.Ns > 0 {
		how := "TCP_INFO"
		if seen.Users.Calls > 0 {
			how = "seen by the tap, or in TCP_INFO of the probe"
		}
		f.support(n.CallSource(), float64(seen.Calls), "calls", "%s had retransmissions (%s), up to %s in one call",
			ofSlow(seen.Calls, n), how, format.Brief(seen.MaxNs))
	}
	if back.Proven() {
		f.supportReplies(back)
	}
	f.supportRetransmitted(l)
	if known && d.Source == recording.SourceHost && d.Total() < maxIdleDemand {
		f.support(recording.SourceHost, d.Total(), "of the time",
			"the main thread was busy only %.0f %% of the time: the calls did not wait for the server", d.Total()*100)
	}
	if !back.Proven() { // the tap sees these at both ends
		f.weighAcks(n)
		f.doubtLoss(n, cl, seen)
	}
	f.FixSteps = lossFix(n)
	return f
}

func (f *Finding) supportRetransmitted(l hosts.PacketLoss) {
	if l.ServerSegs > 0 {
		f.support(recording.SourceHost, l.ServerSegs, "segments", "the server's namespace retransmitted %.0f of %.0f "+
			"segments (RetransSegs), %.2f %%", l.ServerSegs, l.OutSegs, 100*l.ServerSegs/max(l.OutSegs, 1))
	}
	if r := l.Retransmissions; r.Conns > 0 {
		f.support(recording.SourceTap, float64(r.ByServer+r.ByClient), "segments", "on %s the retransmission timer "+
			"expired, %s at the server, %s at clients of this host, after up to %s", counted(r.Conns, "connection"),
			facts.TimesText(int(r.ByServer)), facts.TimesText(int(r.ByClient)), format.Brief(r.MaxNs))
	}
}

// lossOfOthers: the probe's packets arrive, those of other callers do not.
func lossOfOthers(n *facts.Node, l hosts.PacketLoss, overflow bool) *Finding {
	// A peer that acknowledges late, or does not read, gets a tail loss probe (net/ipv4/tcp_output.c,
	// tcp_send_loss_probe). Where nothing else was retransmitted, no segment is known to be lost, and no call waited
	// for a timer.
	probesOnly := n.Growth(series.TCPLossProbes) >= l.ServerSegs
	if overflow || !l.SeenOnPort || probesOnly || l.TimerSegs == 0 || l.LostSegs < degree.Many {
		return nil
	}
	callNs := connection.ConnectionCostOf(n).CallNs
	waited, served := l.TimerSegs*float64(hosts.RTOMinNs), n.Growth(series.TotalCommandsProcessed)*float64(callNs)
	f := &Finding{Of: n.Ledger.Calls()}
	f.loseBeside(n, facts.LostWaiting, waited/(waited+served), hosts.RTOMinNs)
	f.supportRetransmitted(l)
	f.weighAcks(n)
	f.doubt(recording.SourceProbe, 0, "segments", "the probe's own connections lost nothing")
	if l.UnansweredSegs > 0 {
		f.doubt(recording.SourceHost, l.UnansweredSegs, "segments", "%.0f more were retransmitted again and again on "+
			"connections where nothing came back: those are dead, which is no loss of single packets", l.UnansweredSegs)
	}
	if limited := hosts.WindowLimitedNs(n); limited > 0 && l.LostSegs < l.ServerSegs {
		f.doubt(recording.SourceHost, l.ServerSegs-l.LostSegs, "segments", "%.0f of these were not lost, and "+
			"receivers kept their window closed for up to %s (TCP_INFO rwnd_limited): some are window probes",
			l.ServerSegs-l.LostSegs, format.Brief(int64(limited)))
	}
	f.FixSteps = lossFix(n)
	return f
}

// lossFix finds the loss first: all else only makes it cheaper.
func lossFix(n *facts.Node) []remedy.Step {
	rto := remedy.Step{
		ID: "shorter-rto", Kind: remedy.Command, Since: "Linux 6.11",
		Text: "Until then, where round trips take less than 1 ms: retransmit after 20 ms instead of 200 ms, on the " +
			"hosts at both ends (connections opened from now on)",
		Command: "sysctl -w net.ipv4.tcp_rto_min_us=20000",
		Risk:    "on paths with longer round trips segments are retransmitted that were not lost",
	}
	if hosts.KernelBefore(n, 6, 11) {
		rto.Kind, rto.Since, rto.Command = remedy.Change, "", ""
		rto.Text = "Until then, where round trips take less than 1 ms: rto_min 20ms in the route between the hosts, " +
			"at both ends (ip route change), so that a loss costs 20 ms instead of 200 ms"
	}
	return []remedy.Step{
		change("find-the-loss", "Find where packets get lost, and end that: ethtool -S of the cards (drop, err, "+
			"allowance), ip -s link, nft list ruleset and conntrack -S at both ends; in a cloud the instance's "+
			"allowances of bandwidth and packets per second"),
		rto,
	}
}

// doubtLoss says where lost replies are inferred, and where only new connections lost segments.
func (f *Finding) doubtLoss(n *facts.Node, cl, seen facts.Claim) {
	if cl.Ns > 2*seen.Ns {
		f.doubt(recording.SourceProbe, float64(cl.Calls-seen.Calls), "calls", "in most of these calls the caller's "+
			"socket retransmitted nothing: that the reply was lost follows from the server's counters")
	}
	if b := connection.AcceptQueueOf(n); b.FreshRetransmitted > 0 && b.KeptRetransmitted == 0 && cl.Ns <= 2*seen.Ns {
		f.doubt(recording.SourceProbe, float64(b.FreshRetransmitted), "connections",
			"only new connections lost segments, open ones did not: a full accept queue or a firewall does that")
		f.weaken(1)
	}
}

// weighAcks compares late acknowledgements with retransmissions and those without.
func (f *Finding) weighAcks(n *facts.Node) {
	a := hosts.AcknowledgementsOf(n)
	if a.Retransmitted > 0 {
		f.support(recording.SourceTap, float64(a.Retransmitted), "replies", "%s to clients at other addresses "+
			"acknowledged late, up to %s after the send, with retransmissions meanwhile",
			counted(a.Retransmitted, "reply", "replies"), format.Brief(a.MaxRetransmittedNs))
	}
	if a.Other > a.Retransmitted {
		f.doubt(recording.SourceTap, float64(a.Other), "replies", "%s to clients at other addresses acknowledged late "+
			"with nothing retransmitted, the worst %s after the send, with %d bytes in flight to %s: a slow or "+
			"queueing path, or a client's host", counted(a.Other, "reply", "replies"), format.Brief(a.MaxOtherNs),
			a.OtherBytes, a.OtherClient)
	}
}

func (f *Finding) supportReplies(r connection.LostReplies) {
	f.support(recording.SourceTap, float64(r.Late), "replies", "%s arrived at least %s after the server had sent "+
		"them, up to %s; %d of them right after one end retransmitted: they were lost on the way to the caller",
		counted(r.Late, "reply", "replies"), format.Brief(hosts.MinTimeoutNs), format.Brief(r.MaxNs), r.Retransmitted)
}
