package facts

import (
	"fmt"
	"strings"

	"slowpath/internal/recording"
)

// redirects is what was sent on in a cluster.
type Redirects struct {
	Ask           float64
	TryAgain      float64
	Asking        float64 // ASKING, the call after an ASK
	Moved         float64
	DataCalls     float64 // calls of applications that were carried out
	ErrorsCounted bool    // whether errors are counted by their kind
	OpenSlots     []string
}

func (c *Case) Redirects() (r Redirects) {
	r.Moved = c.movedReplies()
	r.ErrorsCounted = r.Moved >= 0
	r.Moved = max(r.Moved, 0)
	for _, n := range c.Nodes {
		r.Ask += n.Growth("errorstat_ASK.count")
		r.TryAgain += n.Growth("errorstat_TRYAGAIN.count")
		r.Asking += max(n.Growth("cmdstat_asking.calls"), float64(n.TapCalls("ASKING")))
		for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
			if base, ok := strings.CutSuffix(name, ".calls"); ok && IsDataCommand(strings.TrimPrefix(base,
				"cmdstat_")) &&
				base != "cmdstat_asking" {
				r.DataCalls += n.Growth(name)
			}
		}
		r.OpenSlots = append(r.OpenSlots, n.openSlots()...)
	}
	return r
}

// openSlots are the moves that a node of its own says are under way.
func (n *Node) openSlots() (out []string) {
	seen := map[string]bool{}
	for _, v := range n.ClusterViews {
		for _, node := range v.Map.Nodes {
			for _, move := range node.Migrating {
				to := move.NodeID
				if o, ok := v.Map.Node(move.NodeID); ok {
					to = o.Addr()
				}
				text := fmt.Sprintf("slot %d from %s to %s", move.Slot, n.Address, to)
				if !seen[text] {
					seen[text] = true
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// CallAndMapNs are the median time in nanoseconds of a call to a node of the cluster, and the time of a call that
// fetches the map, whose server time is that of the refreshes.
func (c *Case) CallAndMapNs(r MapRefresh) (callNs, mapNs float64) {
	for _, n := range c.Nodes {
		if kept, ok := n.Ledger.Path(n.Address, "kept"); ok && callNs == 0 {
			callNs = float64(kept.P50Ns)
		}
	}
	if callNs == 0 {
		callNs = float64(assumedCallNs)
	}
	return callNs, callNs + float64(r.PerCall())
}

// OwnersChanged counts signs that slots changed their owners during the watch.
func (c *Case) OwnersChanged() (changes float64) {
	for _, n := range c.Nodes {
		set := n.Growth("cmdstat_cluster|setslot.calls")
		changes = max(changes, n.Info("cluster_current_epoch").Growth(), set, float64(n.TapCalls("CLUSTER SETSLOT")))
	}
	return changes
}
