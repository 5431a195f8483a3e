package watch

import (
	"slices"
	"strings"
)

// maxEverKnown bounds the nodes that are remembered in a watch: a server could name others in each reply. A map has at
// most 10000.
const maxEverKnown = 100_000

// addNewNodes adds nodes that the view lists for the first time. CLUSTER FORGET is sent to each node separately, so a
// forgotten node is still listed by those that have not received it: it has joined again only if the viewer had
// dropped it before.
func (u *viewUpdate) addNewNodes() {
	for _, node := range u.m.Nodes {
		if joining(node, u.viewer) || u.members[node.ID] != nil || node.Addr() == "" && node.ID != u.viewer {
			continue
		}
		if u.everKnown[node.ID] && (u.before == nil || u.before.nodes[node.ID]) {
			continue
		}
		if len(u.everKnown) >= maxEverKnown && !u.everKnown[node.ID] {
			u.changes.full = true
			continue
		}
		u.members[node.ID] = &member{id: node.ID, addr: node.Addr(), primary: node.Primary, replicaOf: node.PrimaryID}
		u.everKnown[node.ID] = true
		u.emit(Event{Kind: NodeJoined, To: node.Addr(), Node: node.ID})
	}
}

// removeForgotten removes a node that more nodes have dropped than still list it. After the first drop the others are
// polled at once.
func (u *viewUpdate) removeForgotten() {
	view := u.views[u.viewer]
	view.dropped = map[string]bool{}
	if u.before != nil {
		for id := range u.members {
			if !view.nodes[id] && (u.before.nodes[id] || u.before.dropped[id]) {
				view.dropped[id] = true
			}
		}
	}
	var gone []*member
	for _, m := range u.members {
		if !view.dropped[m.id] || m.slots > 0 { // first its slots must get new owners
			continue
		}
		dropped, listing := u.listed(m.id)
		if dropped > len(listing) {
			gone = append(gone, m)
			continue
		}
		for _, id := range listing {
			u.recheck[id] = true
		}
	}
	slices.SortFunc(gone, func(a, b *member) int { return strings.Compare(a.id, b.id) })
	for _, m := range gone {
		delete(u.members, m.id)
		delete(u.views, m.id)
		u.emit(Event{Kind: NodeLeft, From: m.addr, Node: m.id})
	}
}

// listed counts the nodes that have dropped a node, and names those that list it, without the node itself. Nodes that
// never listed it do not count.
func (st *mapState) listed(id string) (dropped int, listing []string) {
	for viewer, view := range st.views {
		switch {
		case viewer == id:
		case view.nodes[id]:
			listing = append(listing, viewer)
		case view.dropped[id]:
			dropped++
		}
	}
	return dropped, listing
}
