package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// movedRefreshStorm: slots change their owners one after the other; calls are answered MOVED, and each makes clients
// fetch the map of the cluster again.
var movedRefreshStorm = Cause{
	ID: "moved-refresh-storm",
	Title: "Slots change their owner again and again: calls are answered MOVED, and each client fetches the map anew " +
		"each time",
	Layer: "client",
	Needs: Needs{
		T0: "MOVED in errorstats (since 6.2) and with them CLUSTER SLOTS, NODES or SHARDS in commandstats; owners " +
			"and epochs that changed between two looks at the map",
		T2: "CLUSTER SETSLOT, and how long the clients wait for the map",
	},
	// one change of the map, of which many hear late
	After:   []string{"failover-window", "stale-topology-silent-master"},
	Explain: func(*facts.Node) *Finding { return nil }, // who is told MOVED by one node asks another
	Whole:   explainMoved,
}

// movedLooks is in how many of the looks at the servers MOVED was new, at least: after a single change clients are told
// so for a moment.
const movedLooks = 3

// movedBesideWaits is the confidence where those who ask for the map are known to let calls wait for it, and it costs
// the servers little.
const movedBesideWaits = 0.55

func explainMoved(c *facts.Case, _ *Finding) *Finding {
	r := c.Redirects()
	var calls, usec, worst, lumped float64
	var busiest *facts.Node
	var asked facts.MapRefresh
	for _, n := range c.Nodes {
		one := n.MapRefresh()
		calls, usec = calls+one.Calls, usec+one.Usec
		if one.SubcommandsMerged {
			lumped++
		}
		if busiest == nil || one.Usec > worst {
			busiest, asked, worst = n, one, one.Usec
		}
	}
	if busiest == nil || calls < minRefreshRate*c.Seconds() || asked.Command == "" {
		return nil
	}
	if !r.ErrorsCounted {
		return movedUncounted(c, busiest, asked)
	}
	if r.Moved < minRedirects || r.Moved < minRedirectShare*(r.DataCalls+r.Moved) ||
		!asked.FollowsMoved() ||
		looksWith(c, "errorstat_MOVED.count") < movedLooks {
		return nil
	}
	in := c.InlineFetches()
	if asked.Share < facts.MinRefreshShare && in.WaitsForMap(r.Moved) {
		// the servers have an easy time of it: what costs is that calls wait for the map (inline-rediscovery)
		return nil
	}
	changes := c.OwnersChanged()
	if changes == 0 && len(r.OpenSlots) > 0 && r.Ask+r.TryAgain > 0 {
		return nil // the owner stays: calls to an open slot that come to its taker without ASKING are told MOVED, too
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.85}
	trip, wait := c.CallAndMapNs(asked)
	lost := r.Moved*trip + calls*wait
	f.ExcessShare = lost / max(lost+r.DataCalls*trip, 1)
	f.ExcessShare = max(f.ExcessShare, busiest.RefreshWaitShare(asked))
	f.support(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED (%.1f per second; errorstats): "+
		"%.1f %% of all calls", r.Moved, r.Moved/c.Seconds(), 100*r.Moved/(r.DataCalls+r.Moved)), r.Moved, "replies")
	f.support(recording.SourceServer, fmt.Sprintf("the map was asked for %.0f times (%s, %s of server time each): "+
		"%.2g for each MOVED", calls, asked.Command, facts.Dur(int64(usec*1e3/calls)), calls/r.Moved), calls, "calls")
	if asked.Share >= facts.MinRefreshShare {
		f.support(recording.SourceServer, fmt.Sprintf("%s: that takes %.1f %% of its main thread's time",
			busiest.Address, asked.Share*100), asked.Share, "of the time")
	}
	if changes > 0 {
		f.Confidence += 0.07
		f.support(recording.SourceServer, fmt.Sprintf("%.0f changes of the map were seen (epochs, CLUSTER SETSLOT)",
			changes), changes, "changes")
	} else {
		f.Confidence -= 0.15
		f.doubt(recording.SourceServer, "no change of the map was seen: clients whose map is stale for another "+
			"reason (they do not refresh, or ask a node that is behind) are told MOVED as well", 0, "changes")
	}
	f.tellWaits(in)
	if in.Library != "" && !in.Guessed && asked.Share < facts.MinRefreshShare {
		// that they fetched the map too seldom for their habit does not say that nobody waited
		f.Confidence = min(f.Confidence, movedBesideWaits)
	}
	if failovers := roleChanges(c); failovers > 0 {
		f.Confidence -= 0.25
		f.doubt(recording.SourceServer, fmt.Sprintf("%d nodes changed their role: after a failover clients are told "+
			"MOVED until they have fetched the map once", failovers), float64(failovers), "nodes")
	}
	if len(asked.Requesters) > 0 {
		f.support(busiest.StateSource(), "the map is asked for by "+asked.Requesters.List(3),
			float64(len(asked.Requesters)), "callers")
	}
	if r.Ask > r.Moved {
		f.doubt(recording.SourceServer, fmt.Sprintf("%.0f calls were answered ASK: more than MOVED", r.Ask), r.Ask,
			"replies")
	}
	f.movedFix(busiest)
	return f
}

// movedUncounted judges servers before 6.2, which do not count MOVED: that slots change their owners was seen, and that
// the map is asked for so often that it weighs on them.
func movedUncounted(c *facts.Case, busiest *facts.Node, asked facts.MapRefresh) *Finding {
	changes, pattern := c.OwnersChanged(), busiest.RefreshWaitShare(asked)
	if changes < minRedirects || pattern == 0 {
		return nil
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.6, ExcessShare: pattern}
	f.support(recording.SourceTap, fmt.Sprintf("%.0f changes of the map were seen (CLUSTER SETSLOT)", changes), changes,
		"changes")
	f.supportRefreshes(busiest, asked)
	f.doubt(recording.SourceServer, "this version does not count MOVED replies: clients that ask periodically would "+
		"look alike", 0, "")
	f.movedFix(busiest)
	return f
}

// tellWaits says whether the calls that were answered MOVED wait for the map: then each of them takes longer
// (inline-rediscovery), else it is the load alone.
func (f *Finding) tellWaits(in facts.InlineFetch) {
	switch {
	case in.Library != "" && in.Guessed:
		f.doubt(recording.SourceTap, "the callers fetch the map as "+in.Library+" does, which lets the call wait for "+
			"it: that costs as well", 0, "")
	case in.Library != "":
		f.doubt(in.Fetchers.Source, in.Fetchers.KnownFrom+": the library is "+in.Library+", which lets the call wait "+
			"for "+
			"the map: that costs as well", 0, "")
	case in.ConcurrentLibrary != "" && len(in.Fetchers.Concurrent) > 0:
		f.support(in.Fetchers.Source, in.Fetchers.KnownFrom+": the library "+
			"is "+in.ConcurrentLibrary+", which fetches the map "+
			"beside "+
			"the calls: none waits for it", 0, "")
	case in.ConcurrentLibrary != "":
		f.support(recording.SourceTap, "the callers fetch the map as "+in.ConcurrentLibrary+" does, beside the "+
			"calls: none "+
			"waits for it", 0, "")
	default:
		f.doubt(recording.SourceServer, "the library is not known (lib-name in CLIENT LIST, servers from 7.2 on): it "+
			"may let the call wait for the map, too", 0, "")
	}
}

func (f *Finding) movedFix(n *facts.Node) {
	f.Fix = append([]string{"Move slots in few large steps, or with Redis ≥ 8.4 (CLUSTER MIGRATION IMPORT) and " +
		"Valkey ≥ 9.0 (CLUSTER MIGRATESLOTS): one change of owner for a whole range"},
		remedy.For(n, remedy.FetchMapLess, nil)...)
	if !facts.ServerAtLeast(n, 7, 0) {
		f.Fix = append(f.Fix, "Upgrade the servers (≥ 7.0; Valkey ≥ 8.0 caches CLUSTER SLOTS): the map costs a "+
			"twentieth and less")
	}
	f.See = []string{
		"https://github.com/valkey-io/valkey/pull/298", "https://github.com/redis/lettuce/issues/2468",
		"https://github.com/redis/rueidis",
	}
}

// looksWith is at how many looks at the servers a counter had grown, of the node where it did most often.
func looksWith(c *facts.Case, counter string) (most int) {
	for _, n := range c.Nodes {
		most = max(most, len(n.Info(counter).Steps()))
	}
	return most
}

// roleChanges counts nodes that became master or replica during the watch.
func roleChanges(c *facts.Case) (count int) {
	for _, n := range c.Nodes {
		count += len(n.Events(recording.SourceServer, recording.KindRoleChange))
	}
	return count
}
