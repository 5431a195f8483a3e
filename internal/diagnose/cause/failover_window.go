package cause

import (
	"fmt"
	"strconv"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// failoverWindow: a master is gone. Until the other nodes have marked it as failed and elected its replica, no node
// serves its slots.
var failoverWindow = Cause{
	ID:      "failover-window",
	Options: []remedy.Topic{remedy.SurviveFailover},
	Changes: []string{"role", "map", "FAILOVER", "REPLICAOF", "SLAVEOF", "CLUSTER *"},
	Explain: explainFailover,
}

func explainFailover(n *facts.Node) *Finding {
	t, ok := nodes.TakeoverOf(n)
	if !ok {
		return explainOrphan(n)
	}
	if !t.Pending && t.TakenNs == 0 {
		return explainReplaced(n, t)
	}
	window := facts.Span{FromNs: t.FromNs(n.Case), ToNs: t.EndNs(n.Case)}
	cl, lost := keptWaiting(n, t), nodes.BlockedNs(n, window)
	if cl.Ns == 0 && lost == 0 {
		return nil // it had no callers
	}
	f := finding(n, cl)
	f.lose(n, facts.LostSilent, float64(lost), window.ToNs-window.FromNs)
	if s := nodes.WaitsAfterTakeover(n, t); s.Ns > 0 { // for them the window ends later, and for another reason
		f.scale(float64(lost) / float64(lost+s.Ns))
		f.doubt(recording.SourceTap, float64(s.Ns), "ns",
			"callers waited for the old master for another %s after that, summed over connections", format.Brief(s.Ns))
	}
	f.supportTakeover(n, t)
	f.supportSilence(n, t)
	f.doubtAfterwards(n, t)
	f.supportNodeTimeout(n)
	f.supportClusterDown(n)
	f.supportUsersOf(n, window)
	f.FixSteps = failoverFix(n, t)
	return f
}

// explainReplaced is for a master that still answered when the watch was prepared, but had been replaced when it began:
// only slowpath's own probe waits for it.
func explainReplaced(n *facts.Node, t nodes.Takeover) *Finding {
	cl := keptWaiting(n, t)
	if cl.Calls == 0 || nodes.WaitsAfterTakeover(n, t).Ns > 0 {
		return nil
	}
	f := finding(n, cl)
	f.Title = "A master had stopped answering and been replaced before the watch began"
	f.support(recording.SourceServer, 0, "",
		"the other nodes have it as failed, and another node has its slots "+
			"already (CLUSTER NODES): the failover is over")
	f.supportSilence(n, t)
	f.supportNodeTimeout(n)
	f.doubt(recording.SourceTap, 0, "", "what callers lost was before the watch; none is seen to wait for it now")
	f.FixSteps = failoverFix(n, t)
	return f
}

// explainOrphan is for a master that could not be reached when the watch began, judged by what its replica reports.
func explainOrphan(n *facts.Node) *Finding {
	t, master, ok := nodes.TakeoverOfUnwatchedMaster(n)
	if !ok {
		return nil
	}
	w := facts.Span{FromNs: t.FromNs(n.Case), ToNs: t.EndNs(n.Case)}
	lost := w.ToNs - w.FromNs // of at least one caller
	f := &Finding{Of: n.Ledger.Calls()}
	f.lose(n, facts.LostSilent, float64(lost), lost)
	if t.Pending {
		f.Title = "A master stopped answering, and no node has taken over its slots yet"
		f.support(recording.SourceServer, float64(lost), "ns",
			"its master %s was gone when the watch began; %s later no node had taken over "+
				"its %d slots (INFO master_link_status, role)", master, format.Brief(lost), t.Slots)
	} else {
		f.support(recording.SourceServer, float64(lost), "ns",
			"its master %s was gone when the watch began; this node was seen "+
				"as master of its %d slots %s later (INFO role)", master, t.Slots, format.Brief(lost))
	}
	if f.supportNodeTimeout(n); !f.supportClusterDown(n) {
		f.doubt(recording.SourceServer, 0, "",
			"whether clients called it meanwhile is not known: it could not be watched")
	}
	f.FixSteps = failoverFix(n, t)
	return f
}

// keptWaiting claims what calls to the old master waited until a replica took over. Slowpath's own calls go on after
// that: they watch that node, not its slots.
func keptWaiting(n *facts.Node, t nodes.Takeover) facts.Claim {
	until := t.EndNs(n.Case)
	end := max(until, t.BackNs)
	if t.BackNs == 0 {
		end = n.EndNs
	}
	return n.ClaimOf(func(a account.Account) facts.StateTimes {
		to := until
		if a.Call.Source != recording.SourceTap {
			to = end
		}
		return facts.Spans{{FromNs: t.FromNs(n.Case), ToNs: to}}.CallTimes(a)
	})
}

func (f *Finding) supportTakeover(n *facts.Node, t nodes.Takeover) {
	slots := "its place"
	if t.Slots > 0 {
		slots = fmt.Sprintf("its %d slots", t.Slots)
	}
	took := t.EndNs(n.Case) - t.FromNs(n.Case)
	if t.Pending {
		f.Title = "A master stopped answering, and no node has taken over its slots yet"
		why := "though other nodes suspect it (cluster_slots_pfail, cluster_slots_fail)"
		if t.Slots == 0 {
			f.Title = "A master is gone, and no watched replica has taken its place"
			why = "though it had replicas (INFO connected_slaves)"
			f.doubt(recording.SourceServer, 0, "",
				"whether a replica has taken over was not seen: pass its replicas as further targets")
		}
		f.support(recording.SourceServer, float64(took), "ns",
			"it stopped answering %s before the end of the watch, and no node took over %s by then, %s",
			format.Brief(took), slots, why)
		return
	}
	f.support(recording.SourceServer, float64(took), "ns",
		"it stopped answering, and its replica %s was seen as the master of %s %s later (INFO role)",
		t.NewMaster.Address,
		slots, format.Brief(took))
}

// supportSilence says why it stopped answering.
func (f *Finding) supportSilence(n *facts.Node, t nodes.Takeover) {
	switch {
	case t.StoppedNs > 0:
		f.support(mainthread.StateSource(n), float64(t.StoppedNs), "ns",
			"its process was stopped for at least %s of that (a signal, a debugger or the freezer)",
			format.Brief(t.StoppedNs))
	case t.ConnsRefused:
		f.support(recording.SourceProbe, float64(nodes.RefusedSince(n, t.DownNs)), "connections",
			"nothing listened at its address: %s refused, so its process had ended",
			counted(nodes.RefusedSince(n, t.DownNs), "connection"))
	default:
		f.doubt(recording.SourceProbe, 0, "",
			"why it stopped answering was not seen: its port was not closed, and its process not watched")
		if t.TakenNs == 0 && (t.Slots == 0 || !t.Pending) {
			f.weaken(1) // nor was a takeover seen
		}
	}
}

// doubtAfterwards: callers that are refused go elsewhere. An old master that is only silent may hold its callers long
// after the window, and slowpath's own connection does not show it.
func (f *Finding) doubtAfterwards(n *facts.Node, t nodes.Takeover) {
	if t.Pending || t.ConnsRefused || t.BackNs > 0 || t.StoppedNs > 0 || mainthread.HostWatched(n) ||
		n.Rec.SeesCalls() {
		return
	}
	f.weaken(1)
	f.doubt(recording.SourceProbe, 0, "",
		"the old master is still silent: only its host's files or the tap show "+
			"whether callers with an old map still wait for it")
}

func (f *Finding) supportNodeTimeout(n *facts.Node) {
	if ms := nodes.NodeTimeoutMs(n); ms > 0 {
		f.support(recording.SourceServer, float64(ms), "ms",
			"cluster-node-timeout is %d ms: only then do the other nodes suspect a node; "+
				"to agree and vote takes a second or two more", ms)
	}
}

// supportClusterDown counts the calls that other nodes refused meanwhile, as they do while any slot has no master.
func (f *Finding) supportClusterDown(n *facts.Node) bool {
	var refused float64
	for _, one := range n.Nodes {
		counted, _ := nodes.ErrorCount(one, "CLUSTERDOWN")
		refused += counted
	}
	if refused > 0 {
		f.support(recording.SourceServer, refused, "calls",
			"the other nodes refused %s with CLUSTERDOWN meanwhile, even for "+
				"their own slots (cluster-require-full-coverage)", counted(refused, "call"))
	}
	return refused > 0
}

// supportUsersOf says what became of the connected clients.
func (f *Finding) supportUsersOf(n *facts.Node, w facts.Span) {
	var callers []*caller.Caller
	closed, waiting := 0, 0
	for _, c := range caller.ClientCallers(n) {
		gone := c.ConnsWhere(func(k *caller.Conn) bool {
			return k.CloseNs >= w.FromNs && k.CloseNs <= w.ToNs+int64(degree.Long)
		})
		for _, k := range gone {
			waiting += k.Lost()
		}
		if closed += len(gone); len(gone) > 0 {
			callers = append(callers, c)
		}
	}
	if closed > 0 {
		f.support(recording.SourceTap, float64(closed), "connections",
			"%s of its callers ended with it (%s), with %s unanswered", counted(closed, "connection"),
			caller.CallerNames(callers), counted(waiting, "call"))
	}
}

// slowToGiveUpMs is the cluster-node-timeout above which a shorter one is worth considering. The default is 15 s; below
// 5 s a fork, a slow disk or a long command can be taken for a failure.
// Bound: arithmetic, it is part of an advice.
const slowToGiveUpMs = 5000

func failoverFix(n *facts.Node, t nodes.Takeover) []remedy.Step {
	why := change("find-why-it-ended", "Find out why it stopped answering: its host, its network, its log")
	why.Where = "the host of the old master"
	switch {
	case t.StoppedNs > 0:
		why.Text = "Find what stopped the process: SIGSTOP, a debugger, docker pause, a snapshot of the machine"
	case t.ConnsRefused:
		why.Text = "Find out why the process ended: its log, journalctl, \"out of memory\" in dmesg"
	}
	fix := []remedy.Step{why}
	at := stillThere(n, t)
	switch ms := nodes.NodeTimeoutMs(n); {
	case ms > slowToGiveUpMs:
		s := remedy.ConfigSetAll(at, "shorter-node-timeout", "cluster-node-timeout", strconv.Itoa(slowToGiveUpMs),
			"The window is about that long, plus a second or two")
		s.Risk = "a healthy node that stands still for longer than that loses its slots; " + s.Risk
		fix = append(fix, s)
	case ms == 0 && t.NewMaster != nil && t.Slots == 0:
		fix = append(fix, remedy.Step{
			ID: "shorter-down-after", Kind: remedy.Setting, Library: "Sentinel",
			Option: "down-after-milliseconds", To: "5000", Where: "every Sentinel",
			Text: "By SENTINEL SET of the master's name; 30 s by default",
			Risk: "a healthy master that stands still for longer than that loses its place",
		})
	}
	if t.Pending {
		fix = append(fix, change("replica-that-may-take-over", "Give each master a replica that may take over "+
			"(cluster-replica-validity-factor, cluster-replica-no-failover), and see that most masters are up"))
	}
	for _, one := range n.Nodes { // the first that reports it
		if v, ok := one.Config("cluster-require-full-coverage"); ok {
			if v == "yes" {
				fix = append(fix, remedy.ServePartly(at))
			}
			break
		}
	}
	fix = append(fix, remedy.Steps(n, remedy.SurviveFailover, nil)...)
	return append(fix, remedy.FailOverFirst) // a master that ended by itself is not asked before
}

// stillThere is a node that commands for the cluster can begin at: n itself may be the master that is gone.
func stillThere(n *facts.Node, t nodes.Takeover) *facts.Node {
	if t.NewMaster != nil {
		return t.NewMaster
	}
	for _, one := range n.Nodes {
		if _, gone := nodes.TakeoverOf(one); !gone {
			return one
		}
	}
	return n
}
