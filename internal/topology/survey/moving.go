package survey

import (
	"cmp"
	"slices"

	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// moving finds open slots. Only the source and the target of a move show them, each in its own line of CLUSTER NODES.
func (v *views) moving() []Moving {
	type route struct{ from, to string }
	type ends struct{ source, taker bool }
	found := map[route]map[uint16]ends{}
	note := func(from, to string, slot uint16, set func(*ends)) {
		w := route{from, to}
		if found[w] == nil {
			found[w] = map[uint16]ends{}
		}
		e := found[w][slot]
		set(&e)
		found[w][slot] = e
	}
	for _, l := range v.nodes {
		me, ok := l.Map.Myself()
		if !ok || !me.Primary {
			continue // from Valkey 8 the replicas show the moves of their master, too
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
		groups := map[ends][]uint16{}
		for slot, e := range slots {
			groups[e] = append(groups[e], slot)
		}
		for e, list := range groups {
			ranges := rangeTexts(cluster.Ranges(list))
			out = append(out, Moving{
				Slots: joinFew(ranges, 6), Count: len(list), From: v.name(w.from), To: v.name(w.to),
				Source: e.source, Taker: e.taker,
			})
		}
	}
	slices.SortFunc(out, func(a, b Moving) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Slots, b.Slots))
	})
	return out
}

// uncovered are the slots without an owner in the majority's map.
func (v *views) uncovered() []string {
	return append([]string{}, rangeTexts(v.majorityNode().Map.Uncovered())...)
}

// sameEpoch are masters with slots that share a config epoch: if both claim a slot, neither wins.
func (v *views) sameEpoch() (pairs [][]string) {
	by := map[uint64][]string{}
	for _, n := range v.majorityNode().Map.Nodes {
		if n.Primary && len(n.Ranges) > 0 && !n.Failed() && v.majorityNode().Source == cost.Nodes {
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

// failureVotes counts the views that mark a node as failed, and those that suspect it.
func (v *views) failureVotes(id string) (failed, suspects int) {
	for i, l := range v.nodes {
		n, ok := v.lines[i][id]
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
