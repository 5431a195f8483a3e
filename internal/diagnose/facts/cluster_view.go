package facts

import (
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/wire/cluster"
)

// masterBefore is whom this node last followed before a time.
func (n *Node) masterBefore(ns int64) (master cluster.Node, ok bool) {
	for _, v := range n.ClusterViews {
		me, known := v.Map.Node(v.SelfID)
		if !known || v.timeNs >= ns || me.PrimaryID == "" {
			continue
		}
		if of, known := v.Map.Node(me.PrimaryID); known {
			master, ok = of, true
		}
	}
	return master, ok
}

func (c *Case) watched(line cluster.Node) bool {
	return slices.ContainsFunc(c.Nodes, func(n *Node) bool { return n.isNode(line) })
}

// view is what a node told of the cluster.
type ClusterView struct {
	cluster.Map
	timeNs int64
	SelfID string // id of who told
}

// viewsOf are the maps that a node told, in order.
func clusterViewsOf(rec *recording.Recording, address string) (out []ClusterView) {
	for _, s := range rec.Snapshots {
		if s.Source != recording.SourceServer || s.Subject != address || s.Name != "cluster-nodes" {
			continue
		}
		m, err := cluster.ParseNodes(s.Body)
		if err != nil {
			continue // cut short
		}
		v := ClusterView{Map: m, timeNs: s.TimeNs}
		for _, one := range m.Nodes {
			if one.HasFlag("myself") {
				v.SelfID = one.ID
			}
		}
		out = append(out, v)
	}
	return out
}

// isNode reports whether a line of CLUSTER NODES is of this node: by its id where it told that itself, else by its
// address.
func (n *Node) isNode(line cluster.Node) bool {
	if len(n.ClusterViews) > 0 && n.ClusterViews[0].SelfID != "" {
		return n.ClusterViews[0].SelfID == line.ID
	}
	return line.Addr() == n.Address
}

// lastSeen is how others last saw this node.
func (n *Node) lastSeen() (line cluster.Node, atNs int64) {
	for _, other := range n.Nodes {
		for _, v := range other.ClusterViews {
			if other == n || v.timeNs < atNs {
				continue
			}
			for _, one := range v.Map.Nodes {
				if n.isNode(one) {
					line, atNs = one, v.timeNs
				}
			}
		}
	}
	return line, atNs
}

// SlotsBefore is how many slots this node had when it was first told of.
func (n *Node) SlotsBefore() int {
	for _, of := range append([]*Node{n}, n.Nodes...) {
		for _, v := range of.ClusterViews {
			for _, one := range v.Map.Nodes {
				if n.isNode(one) && one.Slots() > 0 {
					return one.Slots()
				}
			}
		}
	}
	return 0
}
