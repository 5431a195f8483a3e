package facts

import (
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/wire/cluster"
)

// masterBefore is the master that this node last followed before a time.
func (n *Node) masterBefore(ns int64) (master cluster.Node, ok bool) {
	for _, v := range n.ClusterViews() {
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
func (c *Case) watched(line cluster.Node) bool {
	return slices.ContainsFunc(c.Nodes, func(n *Node) bool { return n.isNode(line) })
}

// ClusterView is the cluster map that a node reported.
type ClusterView struct {
	cluster.Map
	// TimeNs is when the reply came, in nanoseconds since the Unix epoch.
	TimeNs int64
	// SelfID is the id of the node that reported it.
	SelfID string
}

// ClusterViews are the maps that the node reported, in order of time. One that does not parse was cut short, and is left
// out.
func (n *Node) ClusterViews() []ClusterView { return Once(n, "cluster maps", (*Node).findClusterViews) }

func (n *Node) findClusterViews() (out []ClusterView) {
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
func (n *Node) isNode(line cluster.Node) bool {
	if len(n.ClusterViews()) > 0 && n.ClusterViews()[0].SelfID != "" {
		return n.ClusterViews()[0].SelfID == line.ID
	}
	return line.Addr() == n.Address
}

// lastSeen is the last line about this node in the maps of others.
func (n *Node) lastSeen() (line cluster.Node, atNs int64) {
	for _, other := range n.Nodes {
		for _, v := range other.ClusterViews() {
			if other == n || v.TimeNs < atNs {
				continue
			}
			for _, one := range v.Map.Nodes {
				if n.isNode(one) {
					line, atNs = one, v.TimeNs
				}
			}
		}
	}
	return line, atNs
}

// SlotsBefore is how many slots this node had in the first map that names it.
func (n *Node) SlotsBefore() int {
	for _, of := range append([]*Node{n}, n.Nodes...) {
		for _, v := range of.ClusterViews() {
			for _, one := range v.Map.Nodes {
				if n.isNode(one) && one.Slots() > 0 {
					return one.Slots()
				}
			}
		}
	}
	return 0
}

// SilentMasters are the addresses of masters with slots that this node's last cluster map has as failed, or as possibly
// failed.
func (n *Node) SilentMasters() (out []string) {
	if len(n.ClusterViews()) == 0 {
		return nil
	}
	for _, one := range n.ClusterViews()[len(n.ClusterViews())-1].Nodes {
		if one.Primary && len(one.Ranges) > 0 && (one.Failed() || one.HasFlag("fail?")) {
			out = append(out, one.Addr())
		}
	}
	return out
}

// UnassignedSlots is how many slots of its cluster no node has, as the node last said; 0 where it did not say.
func (n *Node) UnassignedSlots() int {
	assigned, ok := n.Series(series.ClusterSlotsAssigned).Last()
	if !ok {
		return 0
	}
	return cluster.SlotCount - int(assigned)
}

// NodeTimeoutMs is cluster-node-timeout in milliseconds, of any node that reports it; 0 where there is no cluster.
func (n *Node) NodeTimeoutMs() int {
	if len(n.ClusterViews()) == 0 && n.SlotsBefore() == 0 {
		return 0
	}
	for _, one := range append([]*Node{n}, n.Nodes...) {
		if ms := one.ConfigInt("cluster-node-timeout"); ms > 0 {
			return ms
		}
	}
	return 0
}
