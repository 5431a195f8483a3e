package watch

import (
	"slices"
	"time"

	"slowpath/internal/wire/cluster"
)

// transfer is slots that went from one owner to another in one view.
type transfer struct{ from, to *member }

// moveSlots finds the slots that have another owner now.
func (n *absorption) moveSlots() {
	index := make([]*member, len(n.m.Nodes))
	for i, node := range n.m.Nodes {
		index[i] = n.members[node.ID]
	}
	moved := map[transfer][]uint16{}
	for slot, i := range n.m.Owners() {
		var claimant *member
		if i >= 0 {
			if claimant = index[i]; claimant == nil { // a node that is not known yet
				continue
			}
		}
		owner := n.owners[slot]
		if claimant == owner {
			continue
		}
		if !n.accept(slot, owner, claimant) {
			n.news.Behind++
			continue
		}
		n.assign(slot, claimant)
		t := transfer{owner, claimant}
		moved[t] = append(moved[t], uint16(slot))
	}
	for _, t := range inOrder(moved) {
		n.report(t, moved[t])
	}
}

func (n *absorption) assign(slot int, owner *member) {
	n.since[slot], n.claims[slot] = n.now, 0
	if before := n.owners[slot]; before != nil {
		before.slots--
		n.claims[slot] = before.epoch
	}
	if n.owners[slot] = owner; owner != nil {
		owner.slots++
		n.claims[slot] = max(n.claims[slot], owner.epoch)
	}
}

// accept decides whether the slot has gone from its owner to the claimant of this view; either may be nil, for nobody.
// What stays open is asked of the two.
func (n *absorption) accept(slot int, owner, claimant *member) bool {
	switch {
	case n.before == nil && len(n.sights) == 1: // the first view of all
		return true
	case claimant == nil: // only the owner can say that it gave a slot up and that nobody has it
		return n.believe(owner)
	case owner == nil:
		return n.believe(claimant)
	case claimant.epoch > owner.epoch && claimant.epoch > n.claims[slot]:
		return true
	case n.viewer == claimant.id && n.says(owner, slot, false), n.viewer == owner.id && n.says(claimant, slot, true):
		return true
	case n.viewer == claimant.id || n.viewer == owner.id || claimant.epoch > n.claims[slot]:
		// Either the two do not agree yet, or the owner has had a newer epoch since it got the slot, so that epochs do
		// not tell any more.
		n.doubts[owner.id], n.doubts[claimant.id] = true, true
		delete(n.doubts, n.viewer)
	}
	return false // most often a view that has not heard of the last move
}

// believe accepts what a node says of itself; what another says of it, it is asked.
func (n *absorption) believe(m *member) bool {
	if n.viewer != m.id {
		n.doubts[m.id] = true
	}
	return n.viewer == m.id
}

// says reports whether the node's own view, since the slot's owner was learnt, has it serve the slot, or not.
func (n *absorption) says(m *member, slot int, serves bool) bool {
	s := n.sights[m.id]
	return s != nil && s.at.After(n.since[slot]) && s.owned.own[slot] == serves
}

// report makes an event of a transfer: a failover where a replica has taken all that its primary had, else a move.
func (n *absorption) report(t transfer, slots []uint16) {
	ranges := cluster.Ranges(slots)
	switch {
	case t.from == nil || t.to == nil || t.from.slots > 0:
		n.tell(t.moved(ranges))
	case t.from.failing || t.to.replicaOf == t.from.id || t.from.replicaOf == t.to.id && !t.from.primary:
		n.tellFailover(t, ranges)
	// a node that had none has all now: a replica that nobody knew for one yet, or a move
	case t.to.slots == len(slots):
		n.handovers = append(n.handovers, handover{t, ranges, n.now})
	default:
		n.tell(t.moved(ranges))
	}
}

// moved is the event of a move.
func (t transfer) moved(ranges []cluster.Range) Event {
	e := Event{Kind: SlotMoved, Slots: ranges}
	if t.from != nil {
		e.From = t.from.addr
	}
	if t.to != nil {
		e.To, e.Node = t.to.addr, t.to.id
	}
	return e
}

func (n *absorption) tellFailover(t transfer, ranges []cluster.Range) {
	if !t.from.failing {
		n.tell(Event{Kind: FailoverStarted, Slots: ranges, From: t.from.addr, Node: t.from.id})
	}
	t.from.failing, t.to.replicaOf = false, ""
	e := t.moved(ranges)
	e.Kind = FailoverEnded
	n.tell(e)
}

// handover is all slots of one node, which went to a node that had none: a failover if the one who gave them follows
// the other now.
type handover struct {
	transfer
	slots []cluster.Range
	at    time.Time
}

// openLongest bounds how long a handover waits for the word of who gave the slots. It is asked at once.
const openLongest = 2 * time.Second

// judgeHandovers tells those of which it is known by now what they were.
func (n *absorption) judgeHandovers() {
	open := n.handovers
	n.handovers = nil
	for _, h := range open {
		s := n.sights[h.from.id]
		heard := s != nil && !s.at.Before(h.at) && !s.owned.own[h.slots[0].From]
		switch {
		case !h.from.primary && h.from.replicaOf == h.to.id:
			n.tellFailover(h.transfer, h.slots)
		case heard || n.members[h.from.id] == nil || n.now.Sub(h.at) > openLongest:
			n.tell(h.moved(h.slots))
		default:
			n.doubts[h.from.id] = true
			n.handovers = append(n.handovers, h)
		}
	}
}

// inOrder sorts transfers by their first slot.
func inOrder(moved map[transfer][]uint16) []transfer {
	out := make([]transfer, 0, len(moved))
	for t := range moved {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b transfer) int { return int(moved[a][0]) - int(moved[b][0]) })
	return out
}

// rangesOf are the slots of a node.
func (a *Atlas) rangesOf(m *member) []cluster.Range {
	var slots []uint16
	for slot, owner := range a.owners {
		if owner == m {
			slots = append(slots, uint16(slot))
		}
	}
	return cluster.Ranges(slots)
}
