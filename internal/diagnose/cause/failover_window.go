package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// failoverWindow: a master is gone, and until the others have given it up and elected its replica nobody serves its
// slots.
var failoverWindow = Cause{
	ID:    "failover-window",
	Title: "A master fell silent, and nobody served its slots until a replica had taken over",
	Layer: "server",
	Needs: Needs{
		T0: "a node that stops answering, and one that was its replica and is a master then (INFO role, CLUSTER " +
			"NODES), or cluster_slots_pfail and cluster_slots_fail at the others; CLUSTERDOWN errors",
		T1: "why it fell silent: the process has ended, or was stopped",
		T2: "the connections that its end closed, and those that were refused in the meantime, by process",
	},
	Explain: explainFailover,
}

func explainFailover(n *facts.Node) *Finding {
	t, ok := n.Takeover()
	if !ok {
		return explainOrphan(n)
	}
	if !t.Pending && t.TakenNs == 0 {
		return explainReplaced(n, t)
	}
	window := facts.Span{FromNs: t.FromNs(n.Case), ToNs: t.EndNs(n.Case)}
	f := finding(n, keptWaiting(n, t), 0.95)
	lost := n.BlockedNs(window)
	f.ExcessShare = max(f.ExcessShare, float64(lost)/float64(max(lost+n.Ledger.Users.ExcessNs, 1)))
	if f.ExcessShare == 0 {
		return nil // it had no callers
	}
	if s := n.WaitsAfterTakeover(t); s.Ns > 0 { // for them the window has another end, and another reason
		f.ExcessShare *= float64(lost) / float64(lost+s.Ns)
		f.doubt(recording.SourceTap, fmt.Sprintf("callers waited for the old master for another %s after that, "+
			"connection by connection", facts.Dur(s.Ns)), float64(s.Ns), "ns")
	}
	f.supportTakeover(n, t)
	f.supportSilence(n, t)
	f.doubtAfterwards(n, t)
	f.supportNodeTimeout(n)
	f.supportClusterDown(n)
	f.supportUsersOf(n, window)
	f.Fix = failoverFix(n, t)
	f.See = failoverSee
	return f
}

var failoverSee = []string{"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#failure-detection", "https://github.com/redis/jedis/issues/1512"}

// explainReplaced is of a master that still answered when the watch was prepared, and had been replaced when it began:
// what waits for it is slowpath's own probe.
func explainReplaced(n *facts.Node, t facts.Takeover) *Finding {
	cl := keptWaiting(n, t)
	if cl.Calls == 0 || n.WaitsAfterTakeover(t).Ns > 0 {
		return nil
	}
	f := finding(n, cl, 0.6)
	f.Title = "A master had fallen silent and been replaced when the watch began"
	f.support(recording.SourceServer, "the others hold it for failed, and its slots are another's already (CLUSTER "+
		"NODES): the failover is over", 0, "")
	f.supportSilence(n, t)
	f.supportNodeTimeout(n)
	f.doubt(recording.SourceTap, "what callers lost by it was before the watch; none is seen to wait for it now", 0, "")
	f.Fix, f.See = failoverFix(n, t), failoverSee
	return f
}

// explainOrphan is of a master that could not be reached when the watch began, by what its replica tells.
func explainOrphan(n *facts.Node) *Finding {
	t, master, ok := n.TakeoverOfUnwatchedMaster()
	if !ok {
		return nil
	}
	w := facts.Span{FromNs: t.FromNs(n.Case), ToNs: t.EndNs(n.Case)}
	lost := w.ToNs - w.FromNs // of at least one caller
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.75, ExcessShare: float64(lost) /
		float64(max(lost+n.Ledger.Users.ExcessNs, 1))}
	if t.Pending {
		f.Title = "A master fell silent, and nobody has taken over its slots yet"
		f.support(recording.SourceServer, fmt.Sprintf("its master %s was gone when the watch began, and %s later "+
			"nobody had taken over its %d slots (INFO master_link_status, role)", master, facts.Dur(lost), t.Slots),
			float64(lost), "ns")
	} else {
		f.support(recording.SourceServer, fmt.Sprintf("its master %s was gone when the watch began; it was seen as "+
			"the master of its %d slots itself %s later (INFO role)", master, t.Slots, facts.Dur(lost)), float64(lost),
			"ns")
	}
	if f.supportNodeTimeout(n); f.supportClusterDown(n) {
		f.Confidence = 0.9
	} else {
		f.doubt(recording.SourceServer, "whether anybody called it meanwhile is not seen: it could not be watched", 0,
			"")
	}
	f.Fix, f.See = failoverFix(n, t), failoverSee
	return f
}

// keptWaiting claims what calls to the old master waited while nobody had taken over. Slowpath's own go on after that:
// it watches that node, and not its slots.
func keptWaiting(n *facts.Node, t facts.Takeover) facts.Claim {
	until := t.EndNs(n.Case)
	end := max(until, t.BackNs)
	if t.BackNs == 0 {
		end = n.EndNs
	}
	return n.ClaimOf(func(a account.Account) (ns int64) {
		to := until
		if a.Call.Source != recording.SourceTap {
			to = end
		}
		return max(0, min(a.Call.EndNs, to)-max(a.Call.IntendedNs, t.FromNs(n.Case)))
	})
}

func (f *Finding) supportTakeover(n *facts.Node, t facts.Takeover) {
	slots := "its place"
	if t.Slots > 0 {
		slots = fmt.Sprintf("its %d slots", t.Slots)
	}
	took := t.EndNs(n.Case) - t.FromNs(n.Case)
	if t.Pending {
		f.Title, f.Confidence = "A master fell silent, and nobody has taken over its slots yet", 0.7
		if t.ConnsRefused {
			f.Confidence = 0.85
		}
		why := "though others suspect it (cluster_slots_pfail, cluster_slots_fail)"
		if t.Slots == 0 {
			f.Title, f.Confidence = "A master is gone, and no replica that is watched has taken its place", 0.6
			why = "though it had replicas (INFO connected_slaves)"
			f.doubt(recording.SourceServer, "whether a replica has taken over is not seen: name its replicas as "+
				"further targets", 0, "")
		}
		f.support(recording.SourceServer, fmt.Sprintf("it has not answered since %s before the end of the watch, and "+
			"nobody has taken over %s by then, %s", facts.Dur(took), slots, why), float64(took), "ns")
		return
	}
	f.support(recording.SourceServer, fmt.Sprintf("it did not answer any more, and its replica %s was seen as the "+
		"master of %s %s later (INFO role)", t.NewMaster.Address, slots, facts.Dur(took)), float64(took), "ns")
}

// supportSilence says why it fell silent, and how long the others took to notice.
func (f *Finding) supportSilence(n *facts.Node, t facts.Takeover) {
	switch {
	case t.StoppedNs > 0:
		f.support(n.StateSource(), fmt.Sprintf("its process was stopped for %s and more of that (a signal, a "+
			"debugger or "+
			"the freezer)", facts.Dur(t.StoppedNs)), float64(t.StoppedNs), "ns")
	case t.ConnsRefused:
		f.support(recording.SourceProbe, fmt.Sprintf("nothing listened at its address then: %d connections were "+
			"refused, so its process had ended", n.RefusedSince(t.DownNs)), float64(n.RefusedSince(t.DownNs)),
			"connections")
	default:
		f.doubt(recording.SourceProbe, "why it fell silent is not seen: neither was its port closed, nor its process "+
			"watched", 0, "")
		f.Confidence -= 0.05
	}
}

// silentConfidence is that of a window behind which the old master stays silent where nobody saw who still waits for
// it.
const silentConfidence = 0.55

// doubtAfterwards: whoever is refused goes elsewhere, but an old master that only keeps silent may hold its callers
// long after the window, and a connection to it does not tell.
func (f *Finding) doubtAfterwards(n *facts.Node, t facts.Takeover) {
	if t.Pending || t.ConnsRefused || t.BackNs > 0 || t.StoppedNs > 0 || n.HostWatched() ||
		n.Rec.Used(recording.SourceTap) {
		return
	}
	f.Confidence = min(f.Confidence, silentConfidence)
	f.doubt(recording.SourceProbe, "the old master is silent still: whether callers go on waiting for it now, by an "+
		"old map, is seen only with the files of its host or the kernel source", 0, "")
}

func (f *Finding) supportNodeTimeout(n *facts.Node) {
	if ms := n.NodeTimeoutMs(); ms > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("cluster-node-timeout is %d ms: only after that do the others "+
			"suspect a node, then agree and vote, which takes a second or two more", ms), float64(ms), "ms")
	}
}

// supportClusterDown counts the calls that other nodes refused meanwhile, which they do as long as any slot is without
// a master.
func (f *Finding) supportClusterDown(n *facts.Node) bool {
	var refused float64
	for _, one := range n.Nodes {
		counted, _ := one.ErrorCount("CLUSTERDOWN")
		refused += counted
	}
	if refused > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the other nodes refused %.0f calls with CLUSTERDOWN "+
			"meanwhile, those for slots of their own among them (cluster-require-full-coverage)", refused), refused,
			"calls")
	}
	return refused > 0
}

// supportUsersOf says what became of those who were connected.
func (f *Finding) supportUsersOf(n *facts.Node, w facts.Span) {
	var callers []*facts.Caller
	closed, waiting := 0, 0
	for _, c := range n.ClientCallers() {
		gone := c.ConnsWhere(func(k *facts.Conn) bool { return k.CloseNs >= w.FromNs && k.CloseNs <= w.ToNs+1e9 })
		for _, k := range gone {
			waiting += k.Unanswered
		}
		if closed += len(gone); len(gone) > 0 {
			callers = append(callers, c)
		}
	}
	if closed > 0 {
		text := fmt.Sprintf("%d connections of its callers ended with it (%s)", closed, facts.CallerNames(callers))
		if waiting > 0 {
			text += fmt.Sprintf(", and %d calls on them had no reply", waiting)
		}
		f.support(recording.SourceTap, text, float64(closed), "connections")
	}
	refused := facts.NameCounts{}
	for _, e := range n.Events(recording.SourceTap, recording.KindClose) {
		if d := recording.DetailOf[recording.ConnDetail](e); d.Reason == recording.CloseRefused &&
			d.Side == recording.Client && e.TimeNs >= w.FromNs && e.TimeNs <= w.ToNs {
			refused[fmt.Sprintf("%s[%d]", d.Comm, d.PID)]++
		}
	}
	if all := refused.Total(); all > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d new connections failed (%s)", all, refused.List(3)),
			float64(all), "connections")
	}
}

// slowToGiveUpMs is the cluster-node-timeout above which a shorter one is worth a thought. The default is 15 s; below 5
// s a fork, a slow disk or a long command can be taken for a failure.
const slowToGiveUpMs = 5000

func failoverFix(n *facts.Node, t facts.Takeover) []string {
	var fix []string
	switch {
	case t.StoppedNs > 0:
		fix = append(fix, "Find who stopped the process (SIGSTOP, a debugger, docker pause, a snapshot of the machine)")
	case t.ConnsRefused:
		fix = append(fix, "Find out why the process ended: its log, journalctl -u, dmesg | grep -i 'out of memory'")
	default:
		fix = append(fix, "Find out why it fell silent: its host, its network, its log")
	}
	fix = append(fix, "Before a planned restart hand over first: CLUSTER FAILOVER at the replica (Sentinel: SENTINEL "+
		"FAILOVER), which takes milliseconds")
	switch ms := n.NodeTimeoutMs(); {
	case ms > slowToGiveUpMs:
		fix = append(fix, fmt.Sprintf("CONFIG SET cluster-node-timeout %d at every node, %d ms now: the window is "+
			"about that and a second or two (not below the longest stall of a node that is well)", slowToGiveUpMs, ms))
	case ms == 0 && t.NewMaster != nil && t.Slots == 0:
		fix = append(fix, "SENTINEL SET NAME down-after-milliseconds 5000 at every Sentinel (30 s by default)")
	}
	if t.Pending {
		fix = append(fix, "See that every master has a replica that may take over (cluster-replica-validity-factor, "+
			"cluster-replica-no-failover), and that most masters live")
	}
	if v, ok := coverage(n); ok && v == "yes" {
		fix = append(fix, "CONFIG SET cluster-require-full-coverage no: the other masters go on serving their own "+
			"slots meanwhile")
	}
	return append(fix, remedy.For(n, remedy.SurviveFailover, nil)...)
}

// coverage is cluster-require-full-coverage of any node that tells it.
func coverage(n *facts.Node) (string, bool) {
	for _, one := range n.Nodes {
		if v, ok := one.Config("cluster-require-full-coverage"); ok {
			return v, true
		}
	}
	return "", false
}
