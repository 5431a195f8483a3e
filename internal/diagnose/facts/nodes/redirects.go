package nodes

import (
	"cmp"
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/recording/series"
)

// Redirects is what the nodes of a cluster redirected.
type Redirects struct {
	// Ask is the number of ASK replies; 0 where they are not counted (before 6.2).
	Ask float64
	// TryAgain is the number of TRYAGAIN replies; 0 where they are not counted.
	TryAgain float64
	// Asking is the number of ASKING, the call after an ASK.
	Asking float64
	// Moved is the number of MOVED replies; 0 where they are not counted.
	Moved float64
	// DataCalls is the number of calls of applications that were executed.
	DataCalls float64
	// ErrorsCounted says whether errors are counted by their code.
	ErrorsCounted bool
	// OpenSlots are the slot migrations under way: "slot 7 from 10.0.0.1:6379 to 10.0.0.2:6379".
	OpenSlots []string
}

// RedirectsOf are those of all nodes together.
func RedirectsOf(c *facts.Case) (r Redirects) {
	r.Moved = movedReplies(c)
	r.ErrorsCounted = r.Moved >= 0
	r.Moved = max(r.Moved, 0)
	for _, n := range c.Nodes {
		r.Ask += n.Growth(series.ErrorCount("ASK"))
		r.TryAgain += n.Growth(series.ErrorCount("TRYAGAIN"))
		r.Asking += max(n.Growth(series.CommandCalls("asking")), float64(mainthread.TapCalls(n, "ASKING")))
		for _, command := range n.CountedCommands() {
			if facts.IsDataCommand(command) && command != "asking" {
				r.DataCalls += n.Growth(series.CommandCalls(command))
			}
		}
		r.OpenSlots = append(r.OpenSlots, openSlots(n)...)
	}
	return r
}

// openSlots are the slot migrations that a node itself reports.
func openSlots(n *facts.Node) (out []string) {
	seen := map[string]bool{}
	for _, v := range ClusterViews(n) {
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

// CallAndMapNs are the median time of a call to the first node of the cluster, and the time of a call that fetches the
// map as the refreshes do, in nanoseconds.
func CallAndMapNs(c *facts.Case, r MapRefresh) (callNs, mapNs float64) {
	for _, n := range c.Nodes {
		callNs = cmp.Or(callNs, float64(connection.ConnectionCostOf(n).CallNs))
	}
	return callNs, callNs + float64(r.PerCall())
}

// OwnersChanged counts signs that slots changed their owners during the watch.
func OwnersChanged(c *facts.Case) (changes float64) {
	for _, n := range c.Nodes {
		set := n.Growth(series.CommandCalls("cluster|setslot"))
		changes = max(changes, n.Growth(series.ClusterCurrentEpoch), set,
			float64(mainthread.TapCalls(n, "CLUSTER SETSLOT")))
	}
	return changes
}
