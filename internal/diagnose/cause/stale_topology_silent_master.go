package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// staleTopology: a master is silent, another has its slots, and callers still wait for the old one: whoever says
// nothing sends no MOVED, and no connection ends.
var staleTopology = Cause{
	ID:    "stale-topology-silent-master",
	Title: "Callers go on waiting for a master that is silent, though another node has its slots",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: a server that is silent does not tell who waits for it",
		T1: "requests of clients that lie unread in the sockets of a stopped server, after CLUSTER NODES of the " +
			"others has another master for its slots",
		T2: "connections to the old master that are made, waited on and given up after that, by process; requests " +
			"that its host never acknowledged",
	},
	Explain: explainStaleTopology,
}

func explainStaleTopology(n *facts.Node) *Finding {
	t, ok := n.Takeover()
	if !ok || t.Pending || t.ConnsRefused {
		return nil // whoever is refused knows at once
	}
	s := n.WaitsAfterTakeover(t)
	if s.Ns == 0 {
		return nil
	}
	var before int64 // what they lost until there was another to go to
	if t.DownNs > 0 && t.TakenNs > 0 {
		before = n.BlockedNs(facts.Span{FromNs: t.DownNs, ToNs: t.TakenNs})
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.95, ExcessShare: float64(s.Ns) /
		float64(s.Ns+before+n.Ledger.Users.ExcessNs)}
	if s.Lasting { // it was so until the end, and no end of it in sight
		f.ExcessShare = max(f.ExcessShare, float64(s.Ns)/float64(s.Ns+n.Ledger.Users.ExcessNs),
			finding(n, claimSince(n, t), 1).ExcessShare)
	}
	f.supportStuck(n, t, s)
	if ms := n.NodeTimeoutMs(); ms > 0 && t.DownNs > 0 && t.TakenNs > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the failover itself took %s (cluster-node-timeout is %d ms)",
			facts.Dur(t.TakenNs-t.DownNs), ms), float64(t.TakenNs-t.DownNs), "ns")
	}
	f.Fix = staleTopologyFix(n, t)
	f.See = []string{
		"https://github.com/redis/lettuce/issues/2082",
		"https://github.com/redis/lettuce/wiki/Redis-Cluster#user-content-refreshing-the-cluster-topology-view",
		"https://man7.org/linux/man-pages/man7/tcp.7.html",
	}
	return f
}

// claimSince claims what calls to the old master waited since another had its slots; slowpath's own stand for those of
// others that wait.
func claimSince(n *facts.Node, t facts.Takeover) facts.Claim {
	return n.ClaimOf(func(a account.Account) int64 {
		return max(0, a.Call.EndNs-max(a.Call.IntendedNs, t.TakenNs, n.StartNs))
	})
}

func (f *Finding) supportStuck(n *facts.Node, t facts.Takeover, s facts.SilentNodeWaits) {
	source := recording.SourceTap
	if s.RequestsUnread {
		source = recording.SourceHost
	}
	when := "which the others hold for failed since before the watch, its slots with another"
	if t.NewMaster != nil {
		when = fmt.Sprintf("though %s is the master of its %d slots since %s", t.NewMaster.Address, t.Slots,
			ago(n.EndNs-t.TakenNs))
	}
	f.support(source, fmt.Sprintf("callers wait for this node, %s: %s, connection by connection (%s)", when,
		facts.Dur(s.Ns),
		s.Callers.List(3)), float64(s.Ns), "ns")
	if s.RequestsUnread {
		f.support(recording.SourceHost, "their requests lie unread in its sockets: the kernel of its host still "+
			"acknowledges them, so that no connection fails", 0, "")
	}
	if s.Dialled > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d connections were made to it after that, and never had a "+
			"reply; %d were given up, after up to %s", s.Dialled, s.GivenUp, facts.Dur(s.LongestNs)),
			float64(s.Dialled),
			"connections")
	}
	if t.StoppedNs > 0 {
		f.support(n.StateSource(), fmt.Sprintf("its process was stopped for %s and more (a signal, a debugger or the "+
			"freezer)", facts.Dur(t.StoppedNs)), float64(t.StoppedNs), "ns")
	}
}

func ago(ns int64) string { return facts.Dur(ns) + " before the end of the watch" }

func staleTopologyFix(n *facts.Node, t facts.Takeover) []string {
	fix := remedy.For(n, remedy.LeaveSilentMaster, nil)
	fix = append(fix, "TCP_USER_TIMEOUT and keepalive end connections to a host that is gone; they do not help where "+
		"only its process is stopped: there a command timeout must")
	if t.StoppedNs > 0 {
		fix = append(fix, "Find who stopped the process, and end it or let it go on (kill -CONT): as a replica it "+
			"would answer MOVED")
	} else {
		fix = append(fix, "End the old master or its host's network for good, so that connections to it break")
	}
	return fix
}
