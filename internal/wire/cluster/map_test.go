package cluster

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Owner is the slow definition of what [Map.Owners] computes for all slots.
func (m Map) Owner(slot uint16) (Node, bool) {
	best := -1
	for i, n := range m.Nodes {
		claims := slices.ContainsFunc(n.Ranges, func(r Range) bool { return r.contains(slot) })
		if claims && (best < 0 || n.Epoch > m.Nodes[best].Epoch) {
			best = i
		}
	}
	if best < 0 {
		return Node{}, false
	}
	return m.Nodes[best], true
}

func (r Range) contains(slot uint16) bool { return r.From <= slot && slot <= r.To }

func sample() Map {
	return Map{Nodes: []Node{
		{ID: "a", Host: "10.0.0.1", Port: 6379, Primary: true, Epoch: 1, Ranges: []Range{{0, 99}, {200, 200}}},
		{ID: "b", Host: "::1", TLSPort: 6380, Primary: true, Epoch: 2, Ranges: []Range{{90, 150}}},
		{ID: "c", Host: "r", Port: 1, PrimaryID: "a", Flags: []string{"slave", "fail"}},
		{ID: "d", Port: 7, Flags: []string{"master", "noaddr"}, Primary: true},
		{ID: "e", Port: 7, PrimaryID: "a"},
	}}
}

func TestOwnerAndUncovered(t *testing.T) {
	m := sample()
	for slot, want := range map[uint16]string{
		0: "a", 89: "a", 90: "b", 150: "b", 200: "a", 151: "", 16383: "",
		65535: "",
	} {
		if n, ok := m.Owner(slot); n.ID != want || ok != (want != "") {
			t.Errorf("slot %d is of %q, want %q", slot, n.ID, want)
		}
	}
	if got := m.Uncovered(); !reflect.DeepEqual(got, []Range{{151, 199}, {201, 16383}}) {
		t.Errorf("uncovered: %v", got)
	}
	if got := (Map{}).Uncovered(); !reflect.DeepEqual(got, []Range{{0, 16383}}) {
		t.Errorf("uncovered of nothing: %v", got)
	}
	m.Nodes[0].Ranges = []Range{{0, 65535}} // made by hand, out of bounds
	if got := m.Uncovered(); got != nil {
		t.Errorf("uncovered: %v", got)
	}
}

func TestRolesAndAddresses(t *testing.T) {
	m := sample()
	var primaries, replicas []string
	for _, n := range m.Serving() {
		primaries = append(primaries, n.ID)
	}
	for _, n := range m.Replicas("a") {
		replicas = append(replicas, n.ID)
	}
	if !reflect.DeepEqual(primaries, []string{"a", "b"}) || !reflect.DeepEqual(replicas, []string{"c", "e"}) ||
		m.Replicas("") != nil {
		t.Errorf("primaries %v, replicas %v", primaries, replicas)
	}
	if _, ok := m.Node(""); ok {
		t.Error("there is a node without an id")
	}
	if n, ok := m.Node("c"); !ok || !n.Failed() || n.HasFlag("myself") {
		t.Errorf("node c: %+v", n)
	}
	if n := m.Nodes[0]; n.Slots() != 101 || n.Failed() {
		t.Errorf("%d slots, want 101", n.Slots())
	}
	m.FillHosts("seed")
	for i, want := range []string{"10.0.0.1:6379", "[::1]:6380", "r:1", "", "seed:7"} {
		if got := m.Nodes[i].Addr(); got != want {
			t.Errorf("address %q, want %q", got, want)
		}
	}
}

// Owners, Owner and Uncovered agree on any map.
func TestOwnersProperty(t *testing.T) {
	ranges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Range {
		from := rapid.Uint16Range(0, SlotCount-1).Draw(t, "from")
		return Range{from, rapid.Uint16Range(from, SlotCount-1).Draw(t, "to")}
	}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		var m Map
		for range rapid.IntRange(0, 4).Draw(t, "nodes") {
			m.Nodes = append(m.Nodes, Node{Epoch: rapid.Uint64Range(0, 3).Draw(t, "epoch"), Ranges: ranges.Draw(t,
				"ranges")})
			m.Nodes[len(m.Nodes)-1].Port = len(m.Nodes)
		}
		gaps := m.Uncovered()
		for slot, owner := range m.Owners() {
			n, ok := m.Owner(uint16(slot))
			if ok != (owner >= 0) || ok && m.Nodes[owner].Port != n.Port {
				t.Fatalf("slot %d: Owners has %d, Owner node %d", slot, owner, n.Port)
			}
			if len(gaps) > 0 && int(gaps[0].To) < slot {
				gaps = gaps[1:]
			}
			if ok == (len(gaps) > 0 && gaps[0].contains(uint16(slot))) {
				t.Fatalf("slot %d: owned %v, gaps %v", slot, ok, gaps)
			}
		}
	})
}
