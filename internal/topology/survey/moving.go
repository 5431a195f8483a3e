package survey

import (
	"cmp"
	"slices"

	"slowpath/internal/topology/cost"
)

// moving finds open slots. Only the two nodes at the ends show them, each in its own line of CLUSTER NODES.
func (v *views) moving() []Moving {
	type way struct{ from, to string }
	type ends struct{ source, taker bool }
	found := map[way]map[int]ends{}
	note := func(from, to string, slot uint16, set func(*ends)) {
		w := way{from, to}
		if found[w] == nil {
			found[w] = map[int]ends{}
		}
		e := found[w][int(slot)]
		set(&e)
		found[w][int(slot)] = e
	}
	for _, l := range v.looks {
		me, ok := myself(l.Map)
		if !ok || !me.Primary {
			continue // from Valkey 8 on the replicas know of the moves of their master, too
		}
		for _, m := range me.Migrating {
			note(me.ID, m.NodeID, m.Slot, func(e *ends) { e.source = true })
		}
		for _, m := range me.Importing {
			note(m.NodeID, me.ID, m.Slot, func(e *ends) { e.taker = true })
		}
	}
	out := []Moving{}
	for w, slots := range found {
		groups := map[ends][]int{}
		for slot, e := range slots {
			groups[e] = append(groups[e], slot)
		}
		for e, list := range groups {
			ranges := rangesOf(list)
			out = append(out, Moving{
				Slots: few(ranges, 6), Count: len(list), From: v.name(w.from), To: v.name(w.to),
				Source: e.source, Taker: e.taker,
			})
		}
	}
	slices.SortFunc(out, func(a, b Moving) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Slots, b.Slots))
	})
	return out
}

// uncovered are the slots that nobody owns in the map that most hold.
func (v *views) uncovered() []string {
	return append([]string{}, texts(v.reference().Map.Uncovered())...)
}

// sameEpoch are masters with slots that share a config epoch: when both claim a slot, nothing tells who is right.
func (v *views) sameEpoch() (pairs [][]string) {
	by := map[uint64][]string{}
	for _, n := range v.reference().Map.Nodes {
		if n.Primary && len(n.Ranges) > 0 && !n.Failed() && v.reference().Source == cost.Nodes {
			by[n.Epoch] = append(by[n.Epoch], v.name(n.ID))
		}
	}
	for _, names := range by {
		if len(names) > 1 {
			pairs = append(pairs, names)
		}
	}
	slices.SortFunc(pairs, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return pairs
}

// claimants gives the views that call a node failed, and those that suspect it.
func (v *views) claimants(id string) (failed, suspects int) {
	for _, l := range v.looks {
		n, ok := l.Map.Node(id)
		switch {
		case !ok || l.ID == id:
		case n.Failed():
			failed++
		case n.HasFlag("fail?"):
			suspects++
		}
	}
	return failed, suspects
}
