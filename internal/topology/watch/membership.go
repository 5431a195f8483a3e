package watch

import "slices"

// meet takes in nodes that the view lists for the first time. A node that was forgotten (CLUSTER FORGET goes to each
// node on its own) is still listed by those that were not told yet: it has joined again only where it was gone.
func (n *absorption) meet() {
	for _, node := range n.m.Nodes {
		if node.HasFlag("handshake") || n.members[node.ID] != nil || node.Addr() == "" {
			continue
		}
		if n.seen[node.ID] && (n.before == nil || n.before.nodes[node.ID]) {
			continue
		}
		n.members[node.ID] = &member{id: node.ID, addr: node.Addr(), primary: node.Primary, replicaOf: node.PrimaryID}
		n.seen[node.ID] = true
		n.tell(Event{Kind: NodeJoined, To: node.Addr(), Node: node.ID})
	}
}

// part lets a node go that more nodes have dropped than still list it. When the first has, the others are asked at
// once.
func (n *absorption) part() {
	mine := n.sights[n.viewer]
	mine.dropped = map[string]bool{}
	if n.before != nil {
		for id := range n.members {
			mine.dropped[id] = !mine.nodes[id] && (n.before.nodes[id] || n.before.dropped[id])
		}
	}
	var gone []*member
	for _, m := range n.members {
		if !mine.dropped[m.id] || m.slots > 0 { // slots are told of by those who have them next
			continue
		}
		dropped, listing := n.listed(m.id)
		if dropped > len(listing) {
			gone = append(gone, m)
			continue
		}
		for _, id := range listing {
			n.doubts[id] = true
		}
	}
	slices.SortFunc(gone, func(a, b *member) int { return compare(a.id, b.id) })
	for _, m := range gone {
		delete(n.members, m.id)
		delete(n.sights, m.id)
		n.tell(Event{Kind: NodeLeft, From: m.addr, Node: m.id})
	}
}

// listed counts the nodes that have dropped a node, and names those that list it, without the node itself. Who has not
// heard of it yet does not count.
func (a *Atlas) listed(id string) (dropped int, listing []string) {
	for viewer, s := range a.sights {
		switch {
		case viewer == id:
		case s.nodes[id]:
			listing = append(listing, viewer)
		case s.dropped[id]:
			dropped++
		}
	}
	return dropped, listing
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
