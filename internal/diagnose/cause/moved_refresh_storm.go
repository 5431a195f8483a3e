package cause

import (
	"fmt"

	"slowpath/internal/recording"
)

// movedRefreshStorm: slots change their owners one after the other; calls are answered MOVED, and each makes clients
// fetch the map of the cluster again. Catalogue D2.
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
	Explain: func(*Node) *Finding { return nil }, // who is told MOVED by one node asks another
	Whole:   explainMoved,
}

// movedLooks is in how many of the looks at the servers MOVED was new, at least: after a single change clients are told
// so for a moment.
const movedLooks = 3

// movedBesideWaits is the confidence where those who ask for the map are known to let calls wait for it, and it costs
// the servers little.
const movedBesideWaits = 0.55

func explainMoved(c *Case, _ *Finding) *Finding {
	r := c.redirects()
	var calls, usec, worst, lumped float64
	var busiest *Node
	var asked refreshing
	for _, n := range c.Nodes {
		one := n.refreshing()
		calls, usec = calls+one.calls, usec+one.usec
		if one.lumped {
			lumped++
		}
		if busiest == nil || one.usec > worst {
			busiest, asked, worst = n, one, one.usec
		}
	}
	if busiest == nil || calls < refreshRate*c.Seconds() || asked.command == "" {
		return nil
	}
	if !r.counted {
		return c.movedUncounted(busiest, asked)
	}
	if r.moved < redirectMin || r.moved < redirectShare*(r.data+r.moved) || !asked.byEvents() ||
		c.looksWith("errorstat_MOVED.count") < movedLooks {
		return nil
	}
	in := c.inline()
	if asked.share < refreshShare && in.waited(r.moved) {
		// the servers have an easy time of it: what costs is that calls wait for the map (inline-rediscovery)
		return nil
	}
	changes := c.ownersChanged()
	if changes == 0 && len(r.open) > 0 && r.ask+r.tryAgain > 0 {
		return nil // the owner stays: calls to an open slot that come to its taker without ASKING are told MOVED, too
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.85}
	trip, wait := c.trips(asked)
	lost := r.moved*trip + calls*wait
	f.ExcessShare = lost / max(lost+r.data*trip, 1)
	f.ExcessShare = max(f.ExcessShare, busiest.refreshPattern(asked))
	f.support(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED (%.1f per second; errorstats): "+
		"%.1f %% of all calls", r.moved, r.moved/c.Seconds(), 100*r.moved/(r.data+r.moved)), r.moved, "replies")
	f.support(recording.SourceServer, fmt.Sprintf("the map was asked for %.0f times (%s, %s of server time each): "+
		"%.2g for each MOVED", calls, asked.command, dur(int64(usec*1e3/calls)), calls/r.moved), calls, "calls")
	if asked.share >= refreshShare {
		f.support(recording.SourceServer, fmt.Sprintf("%s: that takes %.1f %% of its main thread's time",
			busiest.Address, asked.share*100), asked.share, "of the time")
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
	if in.library != "" && !in.guessed && asked.share < refreshShare {
		// that they fetched the map too seldom for their habit does not say that nobody waited
		f.Confidence = min(f.Confidence, movedBesideWaits)
	}
	if failovers := c.roleChanges(); failovers > 0 {
		f.Confidence -= 0.25
		f.doubt(recording.SourceServer, fmt.Sprintf("%d nodes changed their role: after a failover clients are told "+
			"MOVED until they have fetched the map once", failovers), float64(failovers), "nodes")
	}
	if len(asked.by) > 0 {
		f.support(busiest.watcher(), "the map is asked for by "+asked.by.list(3), float64(len(asked.by)), "callers")
	}
	if r.ask > r.moved {
		f.doubt(recording.SourceServer, fmt.Sprintf("%.0f calls were answered ASK: more than MOVED", r.ask), r.ask,
			"replies")
	}
	f.movedFix(busiest)
	return f
}

// movedUncounted judges servers before 6.2, which do not count MOVED: that slots change their owners was seen, and that
// the map is asked for so often that it weighs on them.
func (c *Case) movedUncounted(busiest *Node, asked refreshing) *Finding {
	changes, pattern := c.ownersChanged(), busiest.refreshPattern(asked)
	if changes < redirectMin || pattern == 0 {
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
func (f *Finding) tellWaits(in inline) {
	switch {
	case in.library != "" && in.guessed:
		f.doubt(recording.SourceTap, "the callers fetch the map as "+in.library+" does, which lets the call wait for "+
			"it: that costs as well", 0, "")
	case in.library != "":
		f.doubt(in.fetchers.source, in.fetchers.how+": the library is "+in.library+", which lets the call wait for "+
			"the map: that costs as well", 0, "")
	case in.beside != "" && len(in.fetchers.beside) > 0:
		f.support(in.fetchers.source, in.fetchers.how+": the library is "+in.beside+", which fetches the map beside "+
			"the calls: none waits for it", 0, "")
	case in.beside != "":
		f.support(recording.SourceTap, "the callers fetch the map as "+in.beside+" does, beside the calls: none "+
			"waits for it", 0, "")
	default:
		f.doubt(recording.SourceServer, "the library is not known (lib-name in CLIENT LIST, servers from 7.2 on): it "+
			"may let the call wait for the map, too", 0, "")
	}
}

func (f *Finding) movedFix(n *Node) {
	f.Fix = append([]string{"Move slots in few large steps, or with Redis ≥ 8.4 (CLUSTER MIGRATION IMPORT) and " +
		"Valkey ≥ 9.0 (CLUSTER MIGRATESLOTS): one change of owner for a whole range"}, n.library(movedHabits,
		"redis-py", "lettuce", "jedis", "go-redis", "ioredis", "rueidis")...)
	if !since(n, 7, 0) {
		f.Fix = append(f.Fix, "Upgrade the servers (≥ 7.0; Valkey ≥ 8.0 caches CLUSTER SLOTS): the map costs a "+
			"twentieth and less")
	}
	f.See = []string{
		"https://github.com/valkey-io/valkey/pull/298", "https://github.com/redis/lettuce/issues/2468",
		"https://github.com/redis/rueidis",
	}
}

// looksWith is at how many looks at the servers a counter had grown, of the node where it did most often.
func (c *Case) looksWith(counter string) (most int) {
	for _, n := range c.Nodes {
		most = max(most, len(n.Info(counter).Steps()))
	}
	return most
}

// roleChanges counts nodes that became master or replica during the watch.
func (c *Case) roleChanges() (count int) {
	for _, n := range c.Nodes {
		count += len(n.Events(recording.SourceServer, recording.KindRoleChange))
	}
	return count
}

// movedHabits say per library how to fetch the map less often when slots move.
var movedHabits = map[string]string{
	"redis-py": "redis-py: RedisCluster(reinitialize_steps=20): the map at each 20th MOVED (default 5), else the one " +
		"slot is corrected",
	"lettuce": "Lettuce: ClusterTopologyRefreshOptions.adaptiveRefreshTriggersTimeout(Duration.ofSeconds(30)) (7.x: " +
		"5 s, 6.x: 30 s), dynamicRefreshSources(false): not all nodes",
	"jedis": "Jedis ≥ 3.10: one thread refreshes at a time; before it each that is told MOVED does",
	"go-redis": "go-redis v9: MOVED corrects nothing but starts one reload for all (v9.22 coalesces them): one " +
		"ClusterClient per process, not one per worker",
	"ioredis": "ioredis: slotsRefreshInterval off (v5) and one Cluster per process: each MOVED starts a refresh",
	"rueidis": "rueidis ≥ 1.0.76 spreads refreshes at random over 1 to 30 s",
}

// trips is what a call and a question for the map take, in nanoseconds.
func (c *Case) trips(r refreshing) (call, question float64) {
	for _, n := range c.Nodes {
		if kept, ok := n.Ledger.Path(n.Address, "kept"); ok && call == 0 {
			call = float64(kept.P50Ns)
		}
	}
	if call == 0 {
		call = float64(assumedCallNs)
	}
	return call, call + float64(r.perCall())
}

// ownersChanged counts signs that slots changed their owners during the watch.
func (c *Case) ownersChanged() (changes float64) {
	for _, n := range c.Nodes {
		set := n.Growth("cmdstat_cluster|setslot.calls")
		changes = max(changes, n.Info("cluster_current_epoch").Growth(), set, float64(n.tapCalls("CLUSTER SETSLOT")))
	}
	return changes
}
