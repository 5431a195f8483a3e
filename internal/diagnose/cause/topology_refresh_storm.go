package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/topology/cost"
)

// topologyRefreshStorm: clients request the map of an unchanged cluster again and again, and writing it takes the main
// thread's time.
var topologyRefreshStorm = Cause{
	ID:      "topology-refresh-storm",
	Options: []remedy.Topic{remedy.FetchMapLess},
	After:   []string{"moved-refresh-storm"},
	Explain: explainRefreshStorm,
}

func explainRefreshStorm(n *facts.Node) *Finding {
	r := nodes.MapRefreshOf(n)
	if r.FollowsMoved() || r.Command == "" || r.Moved < 0 && nodes.OwnersChanged(n.Case) >= minRedirects {
		return nil
	}
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool {
		return s.Kind == account.KindCommand && (!s.Stopped || s.Busy) && facts.IsMapCommand(s.Command)
	})
	pattern := nodes.RefreshWaitShare(n, r)
	if !h.Matters() && pattern == 0 || r.Calls < minRefreshRate*n.Seconds() {
		return nil
	}
	f := finding(n, h.Claim)
	if pattern > float64(h.Ns)/float64(max(n.Ledger.ExcessNs, 1))*n.Ledger.Slowness() {
		f.SlowCalls = 0
		f.loseOfCalls(n, pattern, int64(r.PerCall()))
		f.ofCalls(n, r.Share)
	}
	f.supportRefreshes(n, r)
	if h.Matters() {
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, r.Command.String())
	}
	f.doubtRefreshes(n, r)
	f.FixSteps = refreshFix(n, r)
	return f
}

// doubtRefreshes weighs whether something else makes them ask.
func (f *Finding) doubtRefreshes(n *facts.Node, r nodes.MapRefresh) {
	switch {
	case r.Moved < 0 && mapChanged(n):
		f.weaken(1)
		f.doubt(recording.SourceServer, 0, "", "the map changed during the watch, and this version does not count "+
			"MOVED replies: clients may have asked because of it")
	case r.Moved > 0:
		f.doubt(recording.SourceServer, r.Moved, "replies", "%s got MOVED, which makes clients ask, too: at most a "+
			"part of the %.0f map requests", counted(r.Moved, "call"), r.Calls)
	case r.Moved == 0:
		f.support(recording.SourceServer, 0, "replies",
			"no call got MOVED: nothing moved that they would have to learn")
	}
	if r.OnNewConns && !r.Lettuce {
		f.doubt(recording.SourceServer, r.ConnsOpened, "connections", "each map request comes with a new connection: "+
			"client objects made for each job request the map when they start")
	}
	if r.SubcommandsMerged && mainthread.TapCalls(n, r.Command.String()) == 0 && !r.Lettuce {
		f.doubt(recording.SourceServer, 0, "",
			"this version counts all subcommands of CLUSTER as one: %s is a guess by the cost", r.Command.String())
	}
}

// mapChanged reports whether the cluster's epoch or the owners of slots changed during the watch.
func mapChanged(n *facts.Node) bool {
	maps := 0
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "cluster-nodes" {
			maps++
		}
	}
	return maps > 1 || n.Growth(series.ClusterCurrentEpoch) > 0 ||
		n.Growth(series.CommandCalls("cluster|setslot")) > 0 || mainthread.TapCalls(n, "CLUSTER SETSLOT") > 0
}

// refreshFix are the options, those that save most first: refreshes on events, an upgrade, fewer refreshes, replicas
// only; each with what it saves.
func refreshFix(n *facts.Node, r nodes.MapRefresh) (fix []remedy.Step) {
	size, replicas := nodes.MapSize(n)
	habit, known := cost.PolicyOf(r.Library)
	a := cost.NodeLoad{
		Server: n.Rec.Meta[recording.MetaServer], Command: r.Command, Size: size, Replicas: replicas,
		PerSecond: r.Calls / n.Seconds(), PerCall: r.PerCall(),
		AskAll: habit.AskAll || !known && r.Command == cost.Nodes, Library: r.Library,
	}
	options := a.Options()
	slices.SortStableFunc(options, func(a, b cost.Option) int { return cmp.Compare(b.Saves, a.Saves) })
	for i, w := range options {
		fix = append(fix, refreshStep(w))
		fix[i].Or = i > 0
	}
	return fix
}

// refreshStep is an option as a step.
func refreshStep(w cost.Option) remedy.Step {
	s := remedy.Step{ID: "map-" + w.ID, Kind: remedy.Change, Restart: "the application"}
	title := w.Title
	switch w.ID {
	case "longer-period":
		title = "ask less often, a fifth as often" // the period is not known here
	case "upgrade":
		s.ID, s.Restart = "upgrade-server", "the server"
	case "cached-slots":
		s.Restart = "the server"
	case "event-driven":
		s.Risk = "a master that hangs without an error is noticed late"
	}
	s.Text = fmt.Sprintf("%s: saves %.0f %% of it on the masters", strings.ToUpper(title[:1])+title[1:], w.Saves*100)
	if w.How != "" {
		s.Text += " (" + w.How + ")"
	}
	return s
}
