package watch

import (
	"time"

	"slowpath/internal/wire/cluster"
)

// mapState is the current map of a cluster, merged from the views of its nodes. Nodes learn of a change one after the
// other, so a view may be older than the merged map: merge takes only what is new. It opens no connection and reads no
// clock.
//
// Which owner of a slot is right is decided as the nodes decide it: the claim with the greater config epoch wins
// (clusterUpdateSlotsConfigWith in Redis' cluster.c; CLUSTER SETSLOT … NODE gives the importing node the greatest
// epoch, unless it has it already). Where epochs cannot decide (CLUSTER DELSLOTS and ADDSLOTS), the two nodes
// concerned do: the new owner serves the slot, the old one does not.
type mapState struct {
	members    map[string]*member
	owners     [cluster.SlotCount]*member   // nil: no owner
	since      [cluster.SlotCount]time.Time // when the owner was learnt
	ownerEpoch [cluster.SlotCount]uint64    // the greatest epoch of its owners until then
	views      map[string]*nodeView         // by the id of the node whose view it is
	everKnown  map[string]bool              // ids that have ever been members

	handovers []handover // not yet known whether they are moves or failovers
}

// member is a node of the cluster.
type member struct {
	id, addr string
	epoch    uint64 // the greatest that any view has shown for it as a primary
	// The greatest in its lines of CLUSTER NODES, where a replica has the epoch of its primary. A line with a smaller
	// one is older.
	lineEpoch uint64
	primary   bool
	replicaOf string // id of its primary; after a promotion, of its former primary
	slots     int
	failing   bool // failover-started was emitted
}

// sight is the last view of one node.
type nodeView struct {
	at      time.Time
	nodes   map[string]bool // ids it lists
	failed  map[string]bool // ids that it marks as failed
	dropped map[string]bool // ids it used to list
	owned   *slotTable
}

// slotTable says for each slot whether the node itself serves it, and whether it knows an owner.
type slotTable struct{ own, any [cluster.SlotCount]bool }

// newMapState returns an empty map.
func newMapState() *mapState {
	return &mapState{members: map[string]*member{}, views: map[string]*nodeView{}, everKnown: map[string]bool{}}
}

// News is what a view has changed.
type changes struct {
	events  []Event
	recheck []string // ids of nodes whose own view would settle what this one leaves open
	stale   int      // slots whose owner in the view is outdated or uncertain
	viewer  string   // id of the node whose view it was
	full    bool     // nodes were left out, since more than maxEverKnown were named
}

// merge applies the view of one node: a parsed CLUSTER NODES with its hosts filled in. A view that does not mark the
// node itself is ignored.
func (st *mapState) merge(m cluster.Map, now time.Time) changes { return st.apply(m, now).changes }

// load is merge at the start, when what it finds is not a change. It returns the id of the node whose view it is.
func (st *mapState) load(m cluster.Map, now time.Time) (viewer string) {
	return st.apply(m, now).viewer
}

// viewUpdate applies one view to the map.
type viewUpdate struct {
	*mapState
	m       cluster.Map
	now     time.Time
	viewer  string    // id of the node whose view it is
	before  *nodeView // its previous view, or nil
	changes changes
	recheck map[string]bool
}

func (st *mapState) apply(m cluster.Map, now time.Time) *viewUpdate {
	u := &viewUpdate{mapState: st, m: m, now: now, recheck: map[string]bool{}}
	me, marked := m.Myself()
	if u.viewer, u.changes.viewer = me.ID, me.ID; !marked {
		return u
	}
	u.before = st.views[u.viewer]
	st.views[u.viewer] = newNodeView(m, u.viewer, now)
	u.addNewNodes()
	u.updateNodes()
	u.moveSlots()
	u.updateFailures()
	u.removeForgotten()
	u.resolveHandovers()
	for id := range u.recheck {
		u.changes.recheck = append(u.changes.recheck, id)
	}
	return u
}

func newNodeView(m cluster.Map, viewer string, now time.Time) *nodeView {
	v := &nodeView{at: now, nodes: map[string]bool{}, failed: map[string]bool{}, owned: &slotTable{}}
	for _, node := range m.Nodes {
		if joining(node, viewer) {
			continue
		}
		v.nodes[node.ID] = true
		if node.Failed() {
			v.failed[node.ID] = true
		}
		for _, r := range node.Ranges {
			for slot := int(r.From); slot <= int(r.To); slot++ {
				v.owned.any[slot] = true
				v.owned.own[slot] = v.owned.own[slot] || node.ID == viewer
			}
		}
	}
	return v
}

// joining reports whether a node of a view is none of the cluster yet. The viewer always is one.
func joining(node cluster.Node, viewer string) bool {
	return node.HasFlag("handshake") && node.ID != viewer
}

func (u *viewUpdate) emit(e Event) {
	e.Time = u.now
	u.changes.events = append(u.changes.events, e)
}

// updateNodes updates addresses, roles and epochs, where the view is not older than the map.
func (u *viewUpdate) updateNodes() {
	for _, node := range u.m.Nodes {
		known := u.members[node.ID]
		if known == nil || joining(node, u.viewer) {
			continue
		}
		if addr := node.Addr(); addr != "" && (known.addr == "" || node.ID == u.viewer) {
			known.addr = addr
		}
		if node.Primary && node.Epoch >= known.lineEpoch {
			known.primary, known.epoch, known.lineEpoch = true, node.Epoch, node.Epoch
		}
	}
	for _, node := range u.m.Nodes {
		if known := u.members[node.ID]; known != nil && !node.Primary && !joining(node, u.viewer) {
			u.updateReplica(known, node)
		}
	}
}

// updateReplica sets the primary of a replica.
func (u *viewUpdate) updateReplica(known *member, node cluster.Node) {
	primary := u.members[node.PrimaryID]
	if primary == nil || node.Epoch < primary.epoch || known.primary && node.Epoch < known.lineEpoch {
		return
	}
	known.primary, known.replicaOf, known.lineEpoch = false, node.PrimaryID, max(known.lineEpoch, node.Epoch)
}

// addr is the address of a node, empty if it is not known.
func (st *mapState) addr(id string) string {
	if m := st.members[id]; m != nil {
		return m.addr
	}
	return ""
}

// knownNode is a node of the merged map.
type knownNode struct {
	ID, Addr string
	Primary  bool
	Slots    int
}

// nodes lists the members, in no order.
func (st *mapState) nodes() []knownNode {
	nodes := make([]knownNode, 0, len(st.members))
	for _, m := range st.members {
		nodes = append(nodes, knownNode{m.id, m.addr, m.primary, m.slots})
	}
	return nodes
}

// forgetView drops the view of a node that cannot be reached any more, so that it does not count as a vote.
func (st *mapState) forgetView(viewer string) { delete(st.views, viewer) }
