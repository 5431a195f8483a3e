package survey

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// views compares the maps of the nodes.
type views struct {
	nodes    []*NodeState // with a map
	owners   [][]string
	lines    []map[string]*cluster.Node // the nodes of each map by id
	names    map[string]string          // address by id
	asked    map[string]bool            // addresses
	majority int                        // index of a node with the map that most nodes have
	heldBy   int
}

// newViews finds the map, slots and members, that most nodes have; of equally common ones the first, which is the
// target's if it is among them.
func newViews(s *Survey) *views {
	v := &views{names: map[string]string{}, asked: map[string]bool{}}
	type digest = [sha256.Size]byte // of a map: the text of 16384 ids is long
	count, ownersOf := map[digest]int{}, map[digest][]string{}
	var keys []digest
	for _, l := range s.Nodes {
		v.asked[l.Addr] = true
		if !l.HasMap {
			continue
		}
		owners := ownersByID(l.Map)
		key := sha256.Sum256([]byte(strings.Join(owners, " ") + "|" + strings.Join(members(l.Map), " ")))
		if count[key]++; count[key] > 1 {
			owners = ownersOf[key] // most nodes have the same: once is enough
		}
		ownersOf[key] = owners
		v.nodes, v.owners, keys = append(v.nodes, l), append(v.owners, owners), append(keys, key)
		v.lines = append(v.lines, linesByID(l.Map))
	}
	for i, key := range keys {
		if count[key] > v.heldBy {
			v.majority, v.heldBy = i, count[key]
		}
	}
	v.learnNames()
	return v
}

func linesByID(m cluster.Map) map[string]*cluster.Node {
	lines := make(map[string]*cluster.Node, len(m.Nodes))
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.ID != "" && lines[n.ID] == nil {
			lines[n.ID] = n
		}
	}
	return lines
}

func (v *views) learnNames() {
	for _, l := range v.nodes {
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

// name is what a node is called in texts: its address, else the beginning of its id.
func (v *views) name(id string) string {
	if addr := v.names[id]; addr != "" {
		return addr
	}
	return id[:min(8, len(id))]
}

func (v *views) majorityNode() *NodeState { return v.nodes[v.majority] }

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

// members are the ids of all nodes without those in handshake.
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

// differingSlots are the slots that have another owner in a view than in the majority's.
func (v *views) differingSlots(i int) (slots []uint16) {
	for slot, owner := range v.owners[i] {
		if owner != v.owners[v.majority][slot] {
			slots = append(slots, uint16(slot))
		}
	}
	return slots
}

// disagreements lists how the views of some nodes differ from the majority's.
func (v *views) disagreements() []Disagreement {
	found := &differences{by: map[[2]string][]string{}}
	for i, l := range v.nodes {
		v.addSlotDifferences(found, i, l)
		v.addMemberDifferences(found, i, l)
	}
	v.addEpochDifferences(found)
	return found.list()
}

// differences groups nodes with the same difference.
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

// addSlotDifferences groups the differing slots of a view by the two claimed owners.
func (v *views) addSlotDifferences(found *differences, i int, state *NodeState) {
	groups := map[[2]string][]uint16{}
	for _, slot := range v.differingSlots(i) {
		key := [2]string{v.owners[v.majority][slot], v.owners[i][slot]}
		groups[key] = append(groups[key], slot)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int {
		return cmp.Compare(groups[a][0],
			groups[b][0])
	})
	for _, key := range keys {
		found.add("slots", fmt.Sprintf("slots %s: %s for most, for these %s",
			joinFew(rangeTexts(cluster.Ranges(groups[key])), 4),
			v.owner(key[0]), v.owner(key[1])), state.Addr)
	}
}

func (v *views) owner(id string) string {
	if id == "" {
		return "no owner"
	}
	return v.name(id)
}

// addMemberDifferences compares members, roles and health.
func (v *views) addMemberDifferences(found *differences, i int, state *NodeState) {
	if state.Source != cost.Nodes || v.majorityNode().Source != cost.Nodes {
		return // CLUSTER SLOTS lists only nodes that serve slots
	}
	for _, want := range v.majorityNode().Map.Nodes {
		got, known := v.lines[i][want.ID]
		switch {
		case want.HasFlag("handshake"):
		case !known:
			found.add("member", fmt.Sprintf("%s is not known to these", v.name(want.ID)), state.Addr)
		case got.Primary != want.Primary:
			found.add("role", fmt.Sprintf("%s is a %s for most, for these a %s", v.name(want.ID), roleOf(want),
				roleOf(*got)), state.Addr)
		case got.PrimaryID != want.PrimaryID:
			found.add("role", fmt.Sprintf("%s replicates %s for most, for these %s", v.name(want.ID),
				v.owner(want.PrimaryID), v.owner(got.PrimaryID)), state.Addr)
		// no node marks itself as failed
		case got.Failed() != want.Failed() && want.ID != state.ID && want.ID != v.majorityNode().ID:
			found.add("health", fmt.Sprintf("%s is %s for most, for these %s", v.name(want.ID), health(want),
				health(*got)), state.Addr)
		}
	}
	for _, n := range state.Map.Nodes {
		if _, known := v.lines[v.majority][n.ID]; !known && !n.HasFlag("handshake") {
			found.add("member", fmt.Sprintf("%s is known to these, and not to most", v.name(n.ID)), state.Addr)
		}
	}
}

func roleOf(n cluster.Node) string {
	if n.Primary {
		return "master"
	}
	return "replica"
}

func health(n cluster.Node) string {
	if n.Failed() {
		return "failed"
	}
	return "alive"
}

// addEpochDifferences compares the epoch of the cluster; by gossip nodes agree within seconds.
func (v *views) addEpochDifferences(found *differences) {
	ref := v.majorityNode()
	for _, l := range v.nodes {
		if l.HasInfo && ref.HasInfo && l.Info.CurrentEpoch != ref.Info.CurrentEpoch {
			found.add("epoch", fmt.Sprintf("the current epoch is %d for most, for these %d", ref.Info.CurrentEpoch,
				l.Info.CurrentEpoch), l.Addr)
		}
	}
}

// list shows the view of each node that was queried.
func (v *views) list(s *Survey) []View {
	at := map[*NodeState]int{}
	for i, l := range v.nodes {
		at[l] = i
	}
	out := []View{}
	for _, l := range s.Nodes {
		view := View{Address: l.Addr, ID: l.ID, Why: l.Why}
		if l.HasInfo {
			view.State, view.KnownNodes, view.CurrentEpoch = l.Info.State, int(l.Info.KnownNodes), l.Info.CurrentEpoch
		}
		if i, ok := at[l]; ok {
			view.SlotsDiffer = len(v.differingSlots(i))
		} else if view.Why == "" {
			view.Why = "it returns no map"
		}
		out = append(out, view)
	}
	return out
}
