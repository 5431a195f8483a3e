package survey

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// views holds the maps of the nodes against each other.
type views struct {
	looks  []*Look // those with a map
	owners [][]string
	names  map[string]string // address by id
	common int               // index of the look with the map that most hold
	heldBy int
}

// compare finds the map, slots and members, that most nodes hold; of equally common ones the first, which is the
// target's if it is among them.
func compare(s *Survey) *views {
	v := &views{names: map[string]string{}}
	count := map[string]int{}
	var keys []string
	for _, l := range s.Looks {
		if !l.HasMap {
			continue
		}
		owners := ownersByID(l.Map)
		key := strings.Join(owners, " ") + "|" + strings.Join(members(l.Map), " ")
		count[key]++
		v.looks, v.owners, keys = append(v.looks, l), append(v.owners, owners), append(keys, key)
	}
	for i, key := range keys {
		if count[key] > v.heldBy {
			v.common, v.heldBy = i, count[key]
		}
	}
	v.learnNames()
	return v
}

func (v *views) learnNames() {
	for _, l := range v.looks {
		for _, n := range l.Map.Nodes {
			if addr := n.Addr(); addr != "" && v.names[n.ID] == "" {
				v.names[n.ID] = addr
			}
		}
		if l.ID != "" {
			v.names[l.ID] = l.Addr
		}
	}
}

// name is a node for people: its address, else the beginning of its id.
func (v *views) name(id string) string {
	if addr := v.names[id]; addr != "" {
		return addr
	}
	return id[:min(8, len(id))]
}

func (v *views) reference() *Look { return v.looks[v.common] }

// ownersByID gives each slot's owner, empty where it has none.
func ownersByID(m cluster.Map) []string {
	out := make([]string, cluster.SlotCount)
	for slot, at := range m.Owners() {
		if at >= 0 {
			out[slot] = identity(m.Nodes[at])
		}
	}
	return out
}

// members are the ids of all nodes, those that are still shaking hands left out.
func members(m cluster.Map) (ids []string) {
	for _, n := range m.Nodes {
		if !n.HasFlag("handshake") {
			ids = append(ids, identity(n))
		}
	}
	slices.Sort(ids)
	return ids
}

// identity is a node's id, or its address where the reply has no ids (Redis 3).
func identity(n cluster.Node) string { return cmp.Or(n.ID, n.Addr()) }

// differing are the slots of which a view names another owner than the most.
func (v *views) differing(i int) (slots []int) {
	for slot, owner := range v.owners[i] {
		if owner != v.owners[v.common][slot] {
			slots = append(slots, slot)
		}
	}
	return slots
}

// disagreements lists what some nodes see otherwise than the map that most hold.
func (v *views) disagreements() []Disagreement {
	found := &differences{by: map[[2]string][]string{}}
	for i, l := range v.looks {
		v.slotsOtherwise(found, i, l)
		v.membersOtherwise(found, l)
	}
	v.epochsOtherwise(found)
	return found.list()
}

// differences collects the same difference of several nodes.
type differences struct {
	order [][2]string
	by    map[[2]string][]string
}

func (d *differences) add(kind, what, by string) {
	key := [2]string{kind, what}
	if _, known := d.by[key]; !known {
		d.order = append(d.order, key)
	}
	if !slices.Contains(d.by[key], by) {
		d.by[key] = append(d.by[key], by)
	}
}

func (d *differences) list() []Disagreement {
	out := []Disagreement{}
	for _, key := range d.order {
		out = append(out, Disagreement{Kind: key[0], What: key[1], By: d.by[key]})
	}
	return out
}

// slotsOtherwise groups the slots of a view by the two owners that are claimed.
func (v *views) slotsOtherwise(found *differences, i int, l *Look) {
	groups := map[[2]string][]int{}
	for _, slot := range v.differing(i) {
		key := [2]string{v.owners[v.common][slot], v.owners[i][slot]}
		groups[key] = append(groups[key], slot)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int {
		return cmp.Compare(groups[a][0],
			groups[b][0])
	})
	for _, key := range keys {
		found.add("slots", fmt.Sprintf("slots %s: most say %s, these say %s", few(rangesOf(groups[key]), 4),
			v.owner(key[0]), v.owner(key[1])), l.Addr)
	}
}

func (v *views) owner(id string) string {
	if id == "" {
		return "nobody"
	}
	return v.name(id)
}

// membersOtherwise compares who is there, and what he is.
func (v *views) membersOtherwise(found *differences, l *Look) {
	if l.Source != cost.Nodes || v.reference().Source != cost.Nodes {
		return // CLUSTER SLOTS has only those who serve slots
	}
	for _, want := range v.reference().Map.Nodes {
		got, known := l.Map.Node(want.ID)
		switch {
		case want.HasFlag("handshake"):
		case !known:
			found.add("member", fmt.Sprintf("%s is not known to these", v.name(want.ID)), l.Addr)
		case got.Primary != want.Primary:
			found.add("role", fmt.Sprintf("%s is a %s for most, for these a %s", v.name(want.ID), roleOf(want),
				roleOf(got)), l.Addr)
		case got.PrimaryID != want.PrimaryID:
			found.add("role", fmt.Sprintf("%s replicates %s for most, for these %s", v.name(want.ID),
				v.owner(want.PrimaryID), v.owner(got.PrimaryID)), l.Addr)
		// nobody holds himself for failed
		case got.Failed() != want.Failed() && want.ID != l.ID && want.ID != v.reference().ID:
			found.add("health", fmt.Sprintf("%s is %s for most, for these %s", v.name(want.ID), aliveOrNot(want),
				aliveOrNot(got)), l.Addr)
		}
	}
	for _, n := range l.Map.Nodes {
		if _, known := v.reference().Map.Node(n.ID); !known && !n.HasFlag("handshake") {
			found.add("member", fmt.Sprintf("%s is known to these, and not to most", v.name(n.ID)), l.Addr)
		}
	}
}

func roleOf(n cluster.Node) string {
	if n.Primary {
		return "master"
	}
	return "replica"
}

func aliveOrNot(n cluster.Node) string {
	if n.Failed() {
		return "failed"
	}
	return "alive"
}

// epochsOtherwise compares the epoch of the cluster; nodes that gossip agree within seconds.
func (v *views) epochsOtherwise(found *differences) {
	ref := v.reference()
	for _, l := range v.looks {
		if l.HasInfo && ref.HasInfo && l.Info.CurrentEpoch != ref.Info.CurrentEpoch {
			found.add("epoch", fmt.Sprintf("the current epoch is %d for most, for these %d", ref.Info.CurrentEpoch,
				l.Info.CurrentEpoch), l.Addr)
		}
	}
}

// list shows the view of each node that was asked.
func (v *views) list(s *Survey) []View {
	at := map[*Look]int{}
	for i, l := range v.looks {
		at[l] = i
	}
	out := []View{}
	for _, l := range s.Looks {
		view := View{Address: l.Addr, ID: l.ID, Why: l.Why}
		if l.HasInfo {
			view.State, view.KnownNodes, view.CurrentEpoch = l.Info.State, int(l.Info.KnownNodes), l.Info.CurrentEpoch
		}
		if i, ok := at[l]; ok {
			view.SlotsDiffer = len(v.differing(i))
		} else if view.Why == "" {
			view.Why = "it gives no map"
		}
		out = append(out, view)
	}
	return out
}
