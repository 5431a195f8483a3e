package watch

import (
	"slices"
	"time"

	"slowpath/internal/wire/cluster"
)

// transfer is a pair of owners between which slots moved in one view; nil is no owner.
type transfer struct{ from, to *member }

// moveSlots finds the slots that have a new owner.
func (u *viewUpdate) moveSlots() {
	index := make([]*member, len(u.m.Nodes))
	for i, node := range u.m.Nodes {
		index[i] = u.members[node.ID]
	}
	moved := map[transfer][]uint16{}
	for slot, i := range u.m.Owners() {
		var claimant *member
		if i >= 0 {
			if claimant = index[i]; claimant == nil { // a node that is not known yet
				continue
			}
		}
		owner := u.owners[slot]
		if claimant == owner {
			continue
		}
		if !u.accept(slot, owner, claimant) {
			u.changes.stale++
			continue
		}
		u.assign(slot, claimant)
		t := transfer{owner, claimant}
		moved[t] = append(moved[t], uint16(slot))
	}
	for _, t := range bySlot(moved) {
		u.report(t, moved[t])
	}
}

func (u *viewUpdate) assign(slot int, owner *member) {
	u.since[slot], u.ownerEpoch[slot] = u.now, 0
	if before := u.owners[slot]; before != nil {
		before.slots--
		u.ownerEpoch[slot] = before.epoch
	}
	if u.owners[slot] = owner; owner != nil {
		owner.slots++
		u.ownerEpoch[slot] = max(u.ownerEpoch[slot], owner.epoch)
	}
}

// accept decides whether a slot has moved from its owner to the claimant of this view; either may be nil, for no
// owner. If it is undecided, both nodes are to be polled.
func (u *viewUpdate) accept(slot int, owner, claimant *member) bool {
	switch {
	case u.before == nil && len(u.views) == 1: // the first view of all
		return true
	case claimant == nil: // only the owner knows that it gave up a slot which nobody has now
		return u.fromNodeItself(owner)
	case owner == nil:
		return u.fromNodeItself(claimant)
	case claimant.epoch > owner.epoch && claimant.epoch > u.ownerEpoch[slot]:
		return true
	case u.viewer == claimant.id && u.confirms(owner, slot, false), u.viewer == owner.id && u.confirms(claimant, slot,
		true):
		return true
	case u.viewer == claimant.id || u.viewer == owner.id || claimant.epoch > u.ownerEpoch[slot]:
		// Either the two do not agree yet, or the owner has got a newer epoch since it got the slot, so that epochs no
		// longer decide.
		u.recheck[owner.id], u.recheck[claimant.id] = true, true
		delete(u.recheck, u.viewer)
	}
	return false // most often a view from before the last move
}

// fromNodeItself reports whether the view is the node's own; if it is not, the node is to be polled.
func (u *viewUpdate) fromNodeItself(m *member) bool {
	if u.viewer != m.id {
		u.recheck[m.id] = true
	}
	return u.viewer == m.id
}

// confirms reports whether the node's own view, taken after the slot's owner was learnt, agrees on whether it serves
// the slot.
func (u *viewUpdate) confirms(m *member, slot int, serves bool) bool {
	view := u.views[m.id]
	return view != nil && view.at.After(u.since[slot]) && view.owned.own[slot] == serves
}

// report emits a transfer: a failover if a replica has taken all slots of its primary, else a move.
func (u *viewUpdate) report(t transfer, slots []uint16) {
	ranges := cluster.Ranges(slots)
	hadNone := t.to != nil && t.to.slots == len(slots)
	switch {
	case t.from == nil || t.to == nil || t.from.slots > 0:
		u.emit(t.moved(ranges))
	// A master that was given the last slot of another one had slots before: that one becomes its replica by itself.
	case t.from.failing || t.to.replicaOf == t.from.id || t.from.replicaOf == t.to.id && !t.from.primary && hadNone:
		u.emitFailover(t, ranges)
	// A node without slots has all of them now: a replica that was not known as one, or a move.
	case hadNone:
		u.handovers = append(u.handovers, handover{t, ranges, u.now})
	default:
		u.emit(t.moved(ranges))
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

func (u *viewUpdate) emitFailover(t transfer, ranges []cluster.Range) {
	if !t.from.failing {
		u.emit(Event{Kind: FailoverStarted, Slots: ranges, From: t.from.addr, Node: t.from.id})
	}
	t.from.failing, t.to.replicaOf = false, ""
	e := t.moved(ranges)
	e.Kind = FailoverEnded
	u.emit(e)
}

// handover is a move of all slots of a node to a node that had none. It is a failover if the former owner becomes a
// replica of the new one.
type handover struct {
	transfer
	slots  []cluster.Range
	seenAt time.Time
}

// maxHandoverWait bounds how long a handover waits for a view of the former owner, which is polled at once.
const maxHandoverWait = 2 * time.Second

// resolveHandovers emits the handovers that are known by now to be moves or failovers.
func (u *viewUpdate) resolveHandovers() {
	open := u.handovers
	u.handovers = nil
	for _, h := range open {
		view := u.views[h.from.id]
		settled := view != nil && !view.at.Before(h.seenAt) && !view.owned.own[h.slots[0].From]
		switch {
		case !h.from.primary && h.from.replicaOf == h.to.id:
			u.emitFailover(h.transfer, h.slots)
		case settled || u.members[h.from.id] == nil || u.now.Sub(h.seenAt) > maxHandoverWait:
			u.emit(h.moved(h.slots))
		default:
			u.recheck[h.from.id] = true
			u.handovers = append(u.handovers, h)
		}
	}
}

// bySlot sorts transfers by their first slot.
func bySlot(moved map[transfer][]uint16) []transfer {
	out := make([]transfer, 0, len(moved))
	for t := range moved {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b transfer) int { return int(moved[a][0]) - int(moved[b][0]) })
	return out
}

// rangesOf gives the slots of a node.
func (st *mapState) rangesOf(m *member) []cluster.Range {
	var slots []uint16
	for slot, owner := range st.owners {
		if owner == m {
			slots = append(slots, uint16(slot))
		}
	}
	return cluster.Ranges(slots)
}
