package watch

import (
	"fmt"
	"testing"
	"time"

	"slowpath/internal/wire/cluster"
)

// TestEverNewNodes: a server that names other nodes in each reply fills no memory.
func TestEverNewNodes(t *testing.T) {
	st := newMapState()
	const perView = 5000
	full := false
	for round := range maxEverKnown/perView + 3 {
		m := cluster.Map{Nodes: []cluster.Node{{ID: "own", Host: "127.0.0.1", Port: 1, Flags: []string{"myself"}}}}
		for i := range perView {
			id := fmt.Sprint(round, " ", i)
			m.Nodes = append(m.Nodes, cluster.Node{ID: id, Host: "127.0.0.1", Port: 2, Primary: true})
		}
		full = st.merge(m, time.Unix(int64(round), 0)).full
		if len(st.everKnown) > maxEverKnown || len(st.members) > 2*perView+1 {
			t.Fatalf("round %d: %d members of %d", round, len(st.members), len(st.everKnown))
		}
	}
	if !full || len(st.everKnown) != maxEverKnown {
		t.Errorf("full %v with %d nodes", full, len(st.everKnown))
	}
}
