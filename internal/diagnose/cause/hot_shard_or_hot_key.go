package cause

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// hotShard: one node of a cluster is busy all the time, and its peers are not: a key, or a hash tag, is requested far
// more than the others, or the slots are spread unevenly.
var hotShard = Cause{
	ID:      "hot-shard-or-hot-key",
	Class:   ServerStall,
	Options: []remedy.Topic{remedy.CacheHotKeys},
	Explain: explainHotShard,
}

// work is what a node of a cluster does, and how many slots it has.
type work struct {
	node      *facts.Node
	cores     float64 // of its main thread
	source    string  // of these
	perSecond float64 // commands, without those of this watch
	slots     int
}

func explainHotShard(n *facts.Node) *Finding {
	own, peers := workOfCluster(n)
	if own.node == nil || len(peers) == 0 {
		return nil
	}
	cores := medianWork(peers, func(w work) float64 { return w.cores })
	ops := medianWork(peers, func(w work) float64 { return w.perSecond })
	if own.cores < degree.Several*cores {
		return nil // all are busy
	}
	busy := saturation(n)
	if busy == nil {
		return nil
	}
	f := &Finding{
		SlowCalls: busy.SlowCalls, Of: busy.Of, Claims: busy.Claims, Grade: Counted, Doubts: busy.Doubts,
		Culprits: busy.Culprits,
	}
	f.support(own.source, own.cores, "cores",
		"its main thread used %.2f cores; the median of its %s is %.2f", own.cores, counted(len(peers), "peer"), cores)
	f.support(recording.SourceServer, own.perSecond, "per second",
		"it served %.0f commands per second, of %s each; the median of its peers is %.0f, of %s", own.perSecond,
		format.Brief(int64(1e9*own.cores/max(own.perSecond, 1))), ops, format.Brief(int64(1e9*cores/max(ops, 1))))
	uneven := f.supportSlots(own, peers, cores)
	hot := f.weighSlotUse(n)
	f.supportAlone(n)
	f.Evidence = append(f.Evidence, busy.Evidence...)
	f.Against = append(f.Against, busy.Against...)
	f.FixSteps = hotShardFix(n, uneven, hot)
	return f
}

// workOfCluster is what this node of a cluster did during the watch, and its peers: the masters that have slots, or,
// for a replica, the replicas. Without a peer there is nothing to compare it with.
func workOfCluster(n *facts.Node) (own work, peers []work) {
	primary, in := roleOf(n)
	if !in {
		return own, nil
	}
	for _, one := range n.Nodes {
		is, known := roleOf(one)
		if !known || is != primary {
			continue
		}
		cores, source, ok := mainthread.MainCores(one)
		if !ok {
			continue
		}
		w := work{
			node: one, cores: cores, source: source,
			perSecond: max(mainthread.CommandsPerSecond(one)-connection.OwnCommandsPerSecond(one), 0),
			slots:     nodes.SlotsBefore(one),
		}
		if one == n {
			own = w
		} else {
			peers = append(peers, w)
		}
	}
	return own, peers
}

// roleOf says whether this node is a master with slots, or a replica; known is false where it is neither, or did not
// report it.
func roleOf(n *facts.Node) (primary, known bool) {
	views := nodes.ClusterViews(n)
	if len(views) == 0 {
		return false, false
	}
	v := views[len(views)-1]
	me, ok := v.Map.Node(v.SelfID)
	return me.Primary, ok && (!me.Primary || len(me.Ranges) > 0)
}

// medianWork is the median of a property of some nodes, of which there must be one at least.
func medianWork(ws []work, of func(work) float64) float64 {
	var all []float64
	for _, w := range ws {
		all = append(all, of(w))
	}
	slices.Sort(all)
	return stats.MedianUpper(all)
}

// supportSlots distinguishes hot keys from many slots.
func (f *Finding) supportSlots(own work, peers []work, cores float64) (uneven bool) {
	if own.slots == 0 {
		return false
	}
	slots := medianWork(peers, func(w work) float64 { return float64(w.slots) })
	times, load := float64(own.slots)/max(slots, 1), own.cores/max(cores, 1e-9)
	uneven = times > 1 && times > degree.Most*load
	what := "it has no more keys, but some are requested far more than others, or share a hash tag"
	switch {
	case uneven:
		what = "so it has that many more keys"
	case nodes.SlotUseOf(own.node).Usec > 0:
		what = "it has no more keys" // which slots have the load was counted
	}
	f.support(recording.SourceServer, float64(own.slots), "slots", "it has %s, the median of its peers is %s: %s",
		counted(own.slots, "slot"), format.Thousands(slots), what)
	return uneven
}

// weighSlotUse names the slots that take most of the node's time, where it counts that: a hot key or hash tag is in
// one of them. It returns them.
func (f *Finding) weighSlotUse(n *facts.Node) []recording.SlotUse {
	use := nodes.SlotUseOf(n)
	if use.Usec == 0 {
		return nil
	}
	hot, share, most := use.MostOfTime()
	if !most {
		f.doubt(recording.SourceServer, share, "of the time",
			"no slot is hot: the %d busiest of its %s took %s of the time of commands with keys (CLUSTER SLOT-STATS)",
			len(hot), counted(use.Slots, "slot"), format.Percent(share))
		return nil
	}
	var names []string
	for _, slot := range hot[:min(len(hot), degree.Listed)] {
		names = append(names, fmt.Sprintf("%d with %s", slot.Slot, counted(slot.Keys, "key")))
	}
	list := strings.Join(names, ", ")
	if more := len(hot) - len(names); more > 0 {
		list += fmt.Sprintf(", and %d more", more)
	}
	f.support(recording.SourceServer, share, "of the time",
		"of its %s, %d took %s of the time of commands with keys (CLUSTER SLOT-STATS): %s",
		counted(use.Slots, "slot"), len(hot), format.Percent(share), list)
	return hot
}

func hotShardFix(n *facts.Node, uneven bool, hot []recording.SlotUse) []remedy.Step {
	const (
		moves = "keys are moved one after the other: calls get ASK and MOVED meanwhile, and big keys block two nodes"
		list  = "CLUSTER SLOT-STATS ORDERBY CPU-USEC LIMIT 10 DESC"
	)
	addNodes := change("add-nodes", "Add nodes, and move some of its slots to them")
	switch {
	case uneven:
		return []remedy.Step{{
			ID: "rebalance-slots", Kind: remedy.Command,
			Text:    "Spread the slots evenly: it has more than the others",
			Command: remedy.ClusterCLI(n, "rebalance"),
			Risk:    moves,
		}, addNodes}
	case len(hot) == 0 && nodes.SlotUseOf(n).Usec > 0:
		return []remedy.Step{{
			ID: "move-busy-slots", Kind: remedy.Change, Risk: moves,
			Text: "Move some of its busiest slots to its peers: " + list + " lists them",
		}, addNodes}
	}
	which := "the most requested keys"
	find := ". --hotkeys of redis-cli finds them, with maxmemory-policy allkeys-lfu or volatile-lfu"
	switch counts, _ := n.Config("cluster-slot-stats-enabled"); {
	case len(hot) > 0:
		slot := strconv.Itoa(hot[0].Slot)
		which = "the keys of slot " + slot + " (" + remedy.CLI(n, "CLUSTER", "GETKEYSINSLOT", slot, "10") + ")"
		find = ""
	case slotStats(n):
		find = ". " + list + " finds their slots, CLUSTER GETKEYSINSLOT the keys"
		if counts == "no" {
			find += ", after CONFIG SET cluster-slot-stats-enabled yes"
		}
	}
	fix := remedy.Steps(n, remedy.CacheHotKeys, nil)
	for i := range fix {
		fix[i].Or = i > 0
	}
	return append([]remedy.Step{
		inApplication("cache-in-callers", "%s", "Cache "+which+" in the callers, for seconds, or with the server's "+
			"invalidation (CLIENT TRACKING, Redis 6.0)"+find),
		inApplication("split-hot-key", "Split a hot key, KEY:{0} to KEY:{15}: write to all or to a random one, read "+
			"from one. Drop a hash tag that many keys share"),
	}, fix...)
}

// slotStats reports whether the server has CLUSTER SLOT-STATS: Valkey from 8.0, Redis from 8.2.
func slotStats(n *facts.Node) bool {
	name, version, _ := strings.Cut(n.Rec.Meta[recording.MetaServer], " ")
	return name == "valkey" && !strings.HasPrefix(version, "7.") || name == "redis" && facts.ServerAtLeast(n, 8, 2)
}
