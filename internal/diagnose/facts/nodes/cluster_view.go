package nodes

import (
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/wire/cluster"
)

// masterBefore is the master that this node last followed before a time.
func masterBefore(n *facts.Node, ns int64) (master cluster.Node, ok bool) {
	for _, v := range ClusterViews(n) {
		me, known := v.Map.Node(v.SelfID)
		if !known || v.TimeNs >= ns || me.PrimaryID == "" {
			continue
		}
		if of, known := v.Map.Node(me.PrimaryID); known {
			master, ok = of, true
		}
	}
	return master, ok
}

// watched reports whether a line of CLUSTER NODES is that of a watched node.
func watched(c *facts.Case, line cluster.Node) bool {
	return slices.ContainsFunc(c.Nodes, func(n *facts.Node) bool { return isNode(n, line) })
}

// ClusterView is the cluster map that a node reported.
type ClusterView struct {
	cluster.Map
	// TimeNs is when the reply came, in nanoseconds since the Unix epoch.
	TimeNs int64
	// SelfID is the id of the node that reported it.
	SelfID string
}

// ClusterViews are the maps that the node reported, in order of time. One that does not parse was cut short, and is
// left out.
func ClusterViews(n *facts.Node) []ClusterView {
	return facts.Once(n, "cluster maps", findClusterViews)
}

func findClusterViews(n *facts.Node) (out []ClusterView) {
	for _, s := range n.Rec.Snapshots {
		if s.Source != recording.SourceServer || s.Subject != n.Address || s.Name != "cluster-nodes" {
			continue
		}
		m, err := cluster.ParseNodes(s.Body)
		if err != nil {
			continue // cut short
		}
		me, _ := m.Myself()
		out = append(out, ClusterView{Map: m, TimeNs: s.TimeNs, SelfID: me.ID})
	}
	return out
}

// isNode reports whether a line of CLUSTER NODES is of this node: by its id where it reported that itself, else by its
// address.
func isNode(n *facts.Node, line cluster.Node) bool {
	if len(ClusterViews(n)) > 0 && ClusterViews(n)[0].SelfID != "" {
		return ClusterViews(n)[0].SelfID == line.ID
	}
	return line.Addr() == n.Address
}

// lastSeen is the last line about this node in the maps of others.
func lastSeen(n *facts.Node) (line cluster.Node, atNs int64) {
	for _, other := range n.Nodes {
		for _, v := range ClusterViews(other) {
			if other == n || v.TimeNs < atNs {
				continue
			}
			for _, one := range v.Map.Nodes {
				if isNode(n, one) {
					line, atNs = one, v.TimeNs
				}
			}
		}
	}
	return line, atNs
}

// SlotsBefore is how many slots this node had in the first map that names it.
func SlotsBefore(n *facts.Node) int {
	for _, of := range append([]*facts.Node{n}, n.Nodes...) {
		for _, v := range ClusterViews(of) {
			for _, one := range v.Map.Nodes {
				if isNode(n, one) && one.Slots() > 0 {
					return one.Slots()
				}
			}
		}
	}
	return 0
}

// SilentMasters are the addresses of masters with slots that this node's last cluster map has as failed, or as possibly
// failed.
func SilentMasters(n *facts.Node) (out []string) {
	if len(ClusterViews(n)) == 0 {
		return nil
	}
	for _, one := range ClusterViews(n)[len(ClusterViews(n))-1].Nodes {
		if one.Primary && len(one.Ranges) > 0 && (one.Failed() || one.HasFlag("fail?")) {
			out = append(out, one.Addr())
		}
	}
	return out
}

// UnassignedSlots is how many slots of its cluster no node has, as the node last said; 0 where it did not say.
func UnassignedSlots(n *facts.Node) int {
	assigned, ok := n.Series(series.ClusterSlotsAssigned).Last()
	if !ok {
		return 0
	}
	return cluster.SlotCount - int(assigned)
}

// NodeTimeoutMs is cluster-node-timeout in milliseconds, of any node that reports it; 0 where there is no cluster.
func NodeTimeoutMs(n *facts.Node) int {
	if len(ClusterViews(n)) == 0 && SlotsBefore(n) == 0 {
		return 0
	}
	for _, one := range append([]*facts.Node{n}, n.Nodes...) {
		if ms := one.ConfigInt("cluster-node-timeout"); ms > 0 {
			return ms
		}
	}
	return 0
}
