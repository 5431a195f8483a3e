package watch

import (
	"time"

	"slowpath/internal/wire/cluster"
)

// Atlas is what is believed of a cluster, made of the views of its nodes. Nodes learn of a change one after the other,
// so a view may be older than what is believed; Absorb takes of it what is news. It opens no connection and reads no
// clock.
//
// Which owner of a slot is right is decided as the nodes do it: by the config epoch of those who claim it, the greater
// wins (clusterUpdateSlotsConfigWith in Redis' cluster.c; CLUSTER SETSLOT … NODE gives the importing node the greatest
// one, unless it has it). Where no epoch tells (CLUSTER DELSLOTS and ADDSLOTS), the two nodes concerned do: the new
// owner serves the slot, the old one does not.
type Atlas struct {
	members map[string]*member
	owners  [cluster.SlotCount]*member   // nil: nobody
	since   [cluster.SlotCount]time.Time // when that was learnt
	claims  [cluster.SlotCount]uint64    // the greatest epoch of those who had had it by then
	sights  map[string]*sight            // by the id of the node whose view it is
	seen    map[string]bool              // ids that have ever been members

	handovers []handover // of which it is not known yet what they were
}

// member is a node of the cluster.
type member struct {
	id, addr string
	epoch    uint64 // the greatest that any view had for it as a primary
	// the greatest in its lines, where a replica has the epoch of its primary: a line with less is older
	heard     uint64
	primary   bool
	replicaOf string // id of its primary; after a promotion that of the primary it had
	slots     int
	failing   bool // failover-started was told
}

// sight is the last view of one node.
type sight struct {
	at      time.Time
	nodes   map[string]bool // ids it lists
	failed  map[string]bool // ids it holds for failed
	dropped map[string]bool // ids it used to list
	owned   *ownTable
}

// ownTable says for each slot whether the node itself serves it, and whether it knows of any owner.
type ownTable struct{ own, any [cluster.SlotCount]bool }

// NewAtlas returns an empty atlas.
func NewAtlas() *Atlas {
	return &Atlas{members: map[string]*member{}, sights: map[string]*sight{}, seen: map[string]bool{}}
}

// News is what a view has changed.
type News struct {
	Events []Event
	Doubts []string // ids of nodes whose own view would settle what this one leaves open
	Behind int      // slots of which the view is older than what is believed, or is in doubt
	Viewer string   // id of the node whose view it was
}

// Absorb takes in the view of one node, a CLUSTER NODES of which hosts are filled in. A view without the node itself in
// it tells nothing.
func (a *Atlas) Absorb(m cluster.Map, now time.Time) News { return a.absorb(m, now).news }

// Learn is Absorb for the beginning, when what it finds is no news. It returns the id of the node whose view it is.
func (a *Atlas) Learn(m cluster.Map, now time.Time) (viewer string) { return a.absorb(m, now).viewer }

// absorption is one view on its way into the atlas.
type absorption struct {
	*Atlas
	m      cluster.Map
	now    time.Time
	viewer string // id of the node whose view it is
	before *sight // its view before, or nil
	news   News
	doubts map[string]bool
}

func (a *Atlas) absorb(m cluster.Map, now time.Time) *absorption {
	n := &absorption{Atlas: a, m: m, now: now, doubts: map[string]bool{}}
	for _, node := range m.Nodes {
		if node.HasFlag("myself") {
			n.viewer = node.ID
		}
	}
	if n.news.Viewer = n.viewer; n.viewer == "" {
		return n
	}
	n.before = a.sights[n.viewer]
	a.sights[n.viewer] = newSight(m, n.viewer, now)
	n.meet()
	n.describe()
	n.moveSlots()
	n.judgeFailures()
	n.part()
	n.judgeHandovers()
	for id := range n.doubts {
		n.news.Doubts = append(n.news.Doubts, id)
	}
	return n
}

func newSight(m cluster.Map, viewer string, now time.Time) *sight {
	s := &sight{at: now, nodes: map[string]bool{}, failed: map[string]bool{}, owned: &ownTable{}}
	for _, node := range m.Nodes {
		if node.HasFlag("handshake") {
			continue
		}
		s.nodes[node.ID] = true
		if node.Failed() {
			s.failed[node.ID] = true
		}
		for _, r := range node.Ranges {
			for slot := int(r.From); slot <= int(r.To); slot++ {
				s.owned.any[slot] = true
				s.owned.own[slot] = s.owned.own[slot] || node.ID == viewer
			}
		}
	}
	return s
}

func (n *absorption) tell(e Event) {
	e.Time = n.now
	n.news.Events = append(n.news.Events, e)
}

// describe updates what is known of the nodes, as far as the view is not older than that.
func (n *absorption) describe() {
	for _, node := range n.m.Nodes {
		known := n.members[node.ID]
		if known == nil || node.HasFlag("handshake") {
			continue
		}
		if addr := node.Addr(); addr != "" && (known.addr == "" || node.ID == n.viewer) {
			known.addr = addr
		}
		if node.Primary && node.Epoch >= known.heard {
			known.primary, known.epoch, known.heard = true, node.Epoch, node.Epoch
		}
	}
	for _, node := range n.m.Nodes {
		if known := n.members[node.ID]; known != nil && !node.Primary && !node.HasFlag("handshake") {
			n.follow(known, node)
		}
	}
}

// follow notes of whom a node is a replica.
func (n *absorption) follow(known *member, node cluster.Node) {
	primary := n.members[node.PrimaryID]
	if primary == nil || node.Epoch < primary.epoch || known.primary && node.Epoch < known.heard {
		return
	}
	known.primary, known.replicaOf, known.heard = false, node.PrimaryID, max(known.heard, node.Epoch)
}

// Addr is the address of a node, empty if it is not known.
func (a *Atlas) Addr(id string) string {
	if m := a.members[id]; m != nil {
		return m.addr
	}
	return ""
}

// Node is a node as the atlas has it.
type Node struct {
	ID, Addr string
	Primary  bool
	Slots    int
}

// Nodes lists the members, in no order.
func (a *Atlas) Nodes() []Node {
	nodes := make([]Node, 0, len(a.members))
	for _, m := range a.members {
		nodes = append(nodes, Node{m.id, m.addr, m.primary, m.slots})
	}
	return nodes
}

// Forget drops the view of a node that cannot be asked any more: it has no say in what others agree on.
func (a *Atlas) Forget(viewer string) { delete(a.sights, viewer) }
