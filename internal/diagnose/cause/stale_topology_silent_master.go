package cause

import (
	"fmt"
	"math"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// staleTopology: a master is silent, another node has its slots, and callers still wait for the old one: a silent node
// sends no MOVED, and no connection ends.
var staleTopology = Cause{
	ID:      "stale-topology-silent-master",
	Options: []remedy.Topic{remedy.LeaveSilentMaster},
	Changes: []string{"map", "role", "CLUSTER *"},
	Explain: explainStaleTopology,
}

func explainStaleTopology(n *facts.Node) *Finding {
	t, ok := nodes.TakeoverOf(n)
	if !ok || t.Pending || t.ConnsRefused {
		return nil // a refused caller knows at once
	}
	s := nodes.WaitsAfterTakeover(n, t)
	if s.Ns == 0 {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.lose(n, facts.LostSilent, float64(s.Ns), facts.HealthyMaxNs)
	if s.Lasting { // it was so until the end of the watch
		f.claim(n).Calls = slices.Clone(claimSince(n, t).PerCall)
	}
	f.supportStuck(n, t, s)
	if ms := nodes.NodeTimeoutMs(n); ms > 0 && t.DownNs > 0 && t.TakenNs > 0 {
		f.support(recording.SourceServer, float64(t.TakenNs-t.DownNs), "ns",
			"the failover itself took %s (cluster-node-timeout is %d ms)", format.Brief(t.TakenNs-t.DownNs), ms)
	}
	f.FixSteps = staleTopologyFix(n, t)
	return f
}

// claimSince claims what calls to the old master waited since another node had its slots; slowpath's own represent
// those of other waiting clients.
func claimSince(n *facts.Node, t nodes.Takeover) facts.Claim {
	return n.ClaimOf(facts.Spans{{FromNs: max(t.TakenNs, n.StartNs), ToNs: math.MaxInt64}}.CallTimes)
}

func (f *Finding) supportStuck(n *facts.Node, t nodes.Takeover, s nodes.SilentNodeWaits) {
	source := recording.SourceTap
	if s.RequestsUnread {
		source = recording.SourceHost
	}
	when := "which the other nodes have had as failed since before the watch, with its slots on another node"
	if t.NewMaster != nil {
		when = fmt.Sprintf("though %s has been the master of its %d slots since %s", t.NewMaster.Address, t.Slots,
			ago(n.EndNs-t.TakenNs))
	}
	f.support(source, float64(s.Ns), "ns",
		"callers wait for this node, %s: %s, summed over connections (%s)", when, format.Brief(s.Ns), s.Callers.List(3))
	if s.RequestsUnread {
		f.support(recording.SourceHost, 0, "", "their requests are unread in its sockets: its host's kernel still "+
			"acknowledges them, so no connection fails")
	}
	if s.Dialled > 0 {
		f.support(recording.SourceTap, float64(s.Dialled), "connections",
			"%s opened to it after that never got a reply; %d of them were given up, after up to %s",
			counted(s.Dialled, "connection"), s.GivenUp, format.Brief(s.LongestNs))
	}
	if t.StoppedNs > 0 {
		f.support(mainthread.StateSource(n), float64(t.StoppedNs), "ns",
			"its process was stopped for at least %s (a signal, a debugger or the freezer)", format.Brief(t.StoppedNs))
	}
}

func ago(ns int64) string { return format.Brief(ns) + " before the end of the watch" }

func staleTopologyFix(n *facts.Node, t nodes.Takeover) (fix []remedy.Step) {
	if s, ok := remedy.Continue(n); ok && t.StoppedNs > 0 {
		s.Text += ": as a replica it answers MOVED, and callers learn where its slots are"
		fix = append(fix, s)
	} else {
		fix = append(fix, onHost(n, "end-old-master", "End the old master's process, or reject connections to it, so "+
			"that callers get an error and fetch the map"))
	}
	return append(fix, remedy.Steps(n, remedy.LeaveSilentMaster, nil)...)
}
