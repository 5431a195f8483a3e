package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/topology/cost"
)

// topologyRefreshStorm: clients ask again and again for the map of a cluster that does not change, and writing it takes
// the main thread's time. Catalogue D1, incident 002.
var topologyRefreshStorm = Cause{
	ID:    "topology-refresh-storm",
	Title: "Clients ask for the map of the cluster again and again: writing it takes the main thread's time",
	Layer: "client",
	Needs: Needs{
		T0: "time of CLUSTER NODES, SLOTS and SHARDS in commandstats (before 7.0 of CLUSTER), few MOVED replies; " +
			"with each a new connection and an INFO: Lettuce",
		T1: "the main thread on the CPU meanwhile",
		T2: "each question for the map that held the main thread, with its process, and the calls that waited for it",
	},
	After:   []string{"moved-refresh-storm"},
	Explain: explainRefreshStorm,
}

// Bounds of a storm.
const (
	// refreshShare of the main thread's time is more than bookkeeping may take: incident 002 was noticed at 18 %.
	refreshShare = 0.05
	// refreshRate is how often a node is asked, at least: one client in its period asks a few times per minute.
	refreshRate = 1.0 // per second
	// perMoved questions of a node follow from each MOVED reply, at most: a client asks one node, or each node once.
	perMoved = 1.0
)

func explainRefreshStorm(n *Node) *Finding {
	r := n.refreshing()
	if r.byEvents() || r.command == "" || r.moved < 0 && n.Case.ownersChanged() >= redirectMin {
		return nil
	}
	h := n.held(func(s account.Suspect) bool {
		return s.Kind == account.KindCommand && (!s.Stopped || s.Busy) && isMapCommand(s.Command)
	})
	pattern := n.refreshPattern(r)
	if !h.matters() && pattern == 0 || r.calls < refreshRate*n.Seconds() {
		return nil
	}
	f := n.finding(h.Claim, 0.9)
	if pattern > f.ExcessShare*n.Ledger.Slowness() {
		f.ExcessShare, f.SlowCalls = pattern, 0
	}
	f.supportRefreshes(n, r)
	if h.matters() {
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, r.command.String())
	}
	f.doubtRefreshes(n, r)
	f.Fix = n.refreshFix(r)
	f.See = []string{
		"https://github.com/redis/redis/pull/8182", "https://github.com/redis/lettuce/issues/2468",
		"https://redis.github.io/lettuce/ha-sharding/#refreshing-the-cluster-topology-view",
	}
	return f
}

// byEvents reports whether the map is asked for because slots moved: each MOVED reply can make a client ask, and of one
// that asks all nodes each is asked once.
func (r refreshing) byEvents() bool { return r.moved > 0 && r.calls <= perMoved*r.moved }

// refreshPattern is the part of all calls' time that they wait for the map to be written, 0 where the map takes too
// little of the thread: calls come in at random and meet half of a question with the probability of the thread's share
// (M/G/1), and a thread without time left makes them wait in line for each other.
func (n *Node) refreshPattern(r refreshing) float64 {
	if r.share < refreshShare {
		return 0
	}
	wait := r.share * float64(r.perCall()) / 2 / max(1-r.share, 0.05)
	alone := wait
	if kept, ok := n.Ledger.Path(n.Address, "kept"); ok {
		alone = float64(kept.P50Ns)
	}
	share := wait / max(wait+alone, 1)
	if d, ok := n.demand(); ok && d.Wish() >= saturatedWish {
		if q, known := n.queue(); known {
			share = max(share, q.share()*r.work)
		}
		share = max(share, r.work*saturatedRun)
	}
	return min(share, 1)
}

func (f *Finding) supportRefreshes(n *Node, r refreshing) {
	what := r.command.String()
	if r.lumped {
		what = "CLUSTER"
	}
	text := fmt.Sprintf("%s takes %.1f %% of the main thread's time: %.1f calls per second of %s each (commandstats)",
		what, r.share*100, r.calls/n.Seconds(), dur(int64(r.perCall())))
	f.support(recording.SourceServer, text, r.share, "of the time")
	if r.work > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("that is %.0f %% of all the CPU time that the thread used",
			r.work*100), r.work, "of its work")
	}
	size, _ := n.mapSize()
	f.support(recording.SourceServer, fmt.Sprintf("the map has %d nodes and %d ranges of slots; on %s a call costs "+
		"by its size", size.Nodes, size.Ranges, n.Rec.Meta[recording.MetaServer]), float64(size.Nodes), "nodes")
	if k := n.tapCalls(r.command.String()); r.lumped && k > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d of them are %s", k, r.command), float64(k), "calls")
	}
	if r.fresh {
		more := ""
		if about(r.infos, r.calls) {
			more = ", and with each goes an INFO: so refreshes Lettuce"
		}
		f.support(recording.SourceServer, fmt.Sprintf("%.0f connections were opened meanwhile, about as many as the "+
			"map was asked for%s", r.opened, more), r.opened, "connections")
	}
	if len(r.by) > 0 {
		who := r.by.list(3)
		if r.library != "" && !strings.Contains(strings.ToLower(who), r.library) {
			who += " (" + r.library + ")"
		}
		f.support(n.watcher(), "it is asked for by "+who, float64(len(r.by)), "callers")
	}
	f.support(recording.SourceServer, fmt.Sprintf("%.0f clients that ask this node once a minute would ask as often",
		r.calls/n.Seconds()*60), r.calls/n.Seconds()*60, "clients")
}

// doubtRefreshes weighs whether something else makes them ask.
func (f *Finding) doubtRefreshes(n *Node, r refreshing) {
	switch {
	case r.moved < 0 && n.mapChanged():
		f.Confidence -= 0.35
		f.doubt(recording.SourceServer, "the map changed during the watch, and this version does not count MOVED "+
			"replies: clients may have asked because of it", 0, "")
	case r.moved > 0:
		f.doubt(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED, which makes clients ask, too: a "+
			"part of the %.0f questions at most", r.moved, r.calls), r.moved, "replies")
	case r.moved == 0:
		f.support(recording.SourceServer, "no call was answered MOVED: nothing moved that they would have to learn", 0,
			"replies")
	}
	if r.fresh && !r.lettuce {
		f.Confidence -= 0.15
		f.doubt(recording.SourceServer, "each question comes with a new connection: clients that are made for each "+
			"job ask for the map when they begin", r.opened, "connections")
	}
	if r.lumped && n.tapCalls(r.command.String()) == 0 && !r.lettuce {
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, "this version counts all subcommands of CLUSTER as one: that it "+
			"is "+r.command.String()+" is a guess by its cost", 0, "")
	}
}

// mapChanged reports whether the cluster's epoch or the owners of slots changed during the watch.
func (n *Node) mapChanged() bool {
	maps := 0
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "cluster-nodes" {
			maps++
		}
	}
	return maps > 1 || n.Info("cluster_current_epoch").Growth() > 0 || n.Growth("cmdstat_cluster|setslot.calls") > 0 ||
		n.tapCalls("CLUSTER SETSLOT") > 0
}

// refreshFix are the ways out of incident 002, each with what it saves.
func (n *Node) refreshFix(r refreshing) []string {
	size, replicas := n.mapSize()
	habit, known := cost.HabitOf(r.library)
	a := cost.Asked{
		Server: n.Rec.Meta[recording.MetaServer], Command: r.command, Size: size, Replicas: replicas,
		PerSecond: r.calls / n.Seconds(), PerCall: r.perCall(),
		Everyone: habit.Everyone || !known && r.command == cost.Nodes, Library: r.library,
	}
	var fix []string
	for _, w := range a.WaysOut() {
		title := w.Title
		if w.ID == "longer-period" {
			title = "ask more rarely, a fifth as often" // the period is not known here
		}
		text := fmt.Sprintf("%s: saves %.0f %% of it on the masters", upper(title), w.Saves*100)
		if w.How != "" {
			text += " (" + w.How + ")"
		}
		fix = append(fix, text)
	}
	return append(fix, fmt.Sprintf("slowpath topology %s says who asks in which period, and what it would cost at "+
		"other sizes", n.Address))
}

// upper begins a sentence.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
