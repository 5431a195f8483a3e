package cause

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// movedRefreshStorm: slots change owner one after the other; calls get MOVED, and each MOVED makes clients fetch the
// cluster map again.
var movedRefreshStorm = Cause{
	ID:      "moved-refresh-storm",
	Options: []remedy.Topic{remedy.FetchMapLess},
	Changes: []string{"map", "CLUSTER *"},
	// one change of the map, of which many clients learn late
	After:   []string{"failover-window", "stale-topology-silent-master"},
	Explain: func(*facts.Node) *Finding { return nil }, // a caller that gets MOVED from one node asks another
	Whole:   explainMoved,
}

func explainMoved(c *facts.Case, _ *Finding) *Finding {
	r := nodes.RedirectsOf(c)
	var calls, usec, worst, lumped float64
	var busiest *facts.Node
	var asked nodes.MapRefresh
	polls, failovers := 0, 0 // polls in which MOVED had risen, nodes that became master or replica
	for _, n := range c.Nodes {
		polls = max(polls, len(n.Series(series.ErrorCount("MOVED")).Steps()))
		failovers += len(n.Events(recording.SourceServer, recording.KindRoleChange))
		one := nodes.MapRefreshOf(n)
		calls, usec = calls+one.Calls, usec+one.Usec
		if one.SubcommandsMerged {
			lumped++
		}
		if busiest == nil || one.Usec > worst {
			busiest, asked, worst = n, one, one.Usec
		}
	}
	if busiest == nil || calls < degree.Many || asked.Command == "" {
		return nil
	}
	if !r.ErrorsCounted {
		return movedUncounted(c, busiest, asked)
	}
	if r.Moved < minRedirects || r.Moved < minRedirectShare*(r.DataCalls+r.Moved) || !asked.FollowsMoved() ||
		polls < degree.Several {
		return nil // after a single change clients get MOVED only briefly
	}
	in := nodes.InlineFetches(c)
	if asked.Share < degree.Part && in.WaitsForMap(r.Moved) {
		// the servers are hardly loaded by it: the cost is that calls wait for the map (inline-rediscovery)
		return nil
	}
	changes := nodes.OwnersChanged(c)
	if changes == 0 && len(r.OpenSlots) > 0 && r.Ask+r.TryAgain > 0 {
		return nil // the owner stays: calls to an open slot that reach its target without ASKING get MOVED, too
	}
	f := &Finding{Of: c.Ledger.Calls()}
	trip, wait := nodes.CallAndMapNs(c, asked)
	lost := r.Moved*trip + calls*wait
	f.loseBeside(c.Nodes[0], facts.LostWaiting,
		max(lost/max(lost+r.DataCalls*trip, 1), nodes.RefreshWaitShare(busiest, asked)), int64(lost/r.Moved))
	f.ofCalls(c.Nodes[0], max(asked.Share, r.Moved/(r.DataCalls+r.Moved)))
	f.support(recording.SourceServer, r.Moved, "replies", "%s got MOVED (%.1f per second; errorstats): %.1f %% of all "+
		"calls", counted(r.Moved, "call"), r.Moved/c.Seconds(), 100*r.Moved/(r.DataCalls+r.Moved))
	f.support(recording.SourceServer, calls, "calls", "the map was requested %.0f times (%s, %s of server time each): "+
		"%s for each MOVED", calls, asked.Command, format.Brief(int64(usec*1e3/calls)), format.Rounded(calls/r.Moved))
	if asked.Share >= degree.Part {
		f.support(recording.SourceServer, asked.Share, "of the time",
			"%s: that takes %.1f %% of its main thread's time", busiest.Address, asked.Share*100)
	}
	if changes > 0 {
		f.support(recording.SourceServer, changes, "changes",
			"%s of the map seen (epochs, CLUSTER SETSLOT)", counted(changes, "change"))
	} else {
		f.doubt(recording.SourceServer, 0, "changes", "no change of the map was seen: clients with a map that is "+
			"stale for another reason (they do not refresh, or ask a node that is behind) get MOVED as well")
	}
	f.supportWaitsForMap(in)
	if in.Library != "" && !in.Guessed && asked.Share < degree.Part {
		// that they fetched the map less often than the library would does not prove that no call waited
		f.weaken(1)
	}
	if failovers > 0 {
		f.weaken(1)
		f.doubt(recording.SourceServer, float64(failovers), "nodes", "%s changed role: after a failover clients get "+
			"MOVED until they have fetched the map once", counted(failovers, "node"))
	}
	if len(asked.Requesters) > 0 {
		f.support(mainthread.StateSource(busiest), float64(len(asked.Requesters)), "callers",
			"the map is requested by %s", asked.Requesters.List(3))
	}
	f.FixSteps = movedFix(busiest)
	return f
}

// movedUncounted judges servers before 6.2, which do not count MOVED: slots were seen to change owner, and the map
// requests load the servers.
func movedUncounted(c *facts.Case, busiest *facts.Node, asked nodes.MapRefresh) *Finding {
	changes, pattern := nodes.OwnersChanged(c), nodes.RefreshWaitShare(busiest, asked)
	if changes < minRedirects || pattern == 0 {
		return nil
	}
	f := &Finding{Of: c.Ledger.Calls()}
	f.loseBeside(c.Nodes[0], facts.LostWaiting, pattern, 0)
	f.support(recording.SourceTap, changes, "changes",
		"%s of the map seen (CLUSTER SETSLOT)", counted(changes, "change"))
	f.supportRefreshes(busiest, asked)
	f.doubt(recording.SourceServer, 0, "",
		"this version does not count MOVED replies: clients that refresh periodically would look the same")
	f.FixSteps = movedFix(busiest)
	return f
}

// supportWaitsForMap says whether calls that get MOVED wait for the map: then each of them takes longer
// (inline-rediscovery), else the cost is the load alone.
func (f *Finding) supportWaitsForMap(in nodes.InlineFetch) {
	switch source, library := fetchers(in); {
	case in.Library != "":
		f.doubt(source, 0, "", "%s; that costs time as well", library)
	case in.ConcurrentLibrary != "":
		f.support(source, 0, "", "%s", library)
	default:
		f.doubt(recording.SourceServer, 0, "",
			"the library is not known (lib-name in CLIENT LIST, servers from 7.2): its calls may wait for the map, too")
	}
}

func movedFix(n *facts.Node) []remedy.Step {
	fix := append([]remedy.Step{remedy.MoveInLargeSteps(n)}, remedy.Steps(n, remedy.FetchMapLess, nil)...)
	if !facts.ServerAtLeast(n, 7, 0) {
		fix = append(fix, newerServer("Upgrade the servers to Redis 7.0 or Valkey: the map costs a twentieth or less"))
	}
	return fix
}
