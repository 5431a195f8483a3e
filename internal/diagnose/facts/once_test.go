package facts

import "testing"

// TestOnce: a fact is found once for a node and once for its case, also where there is nothing to find. One of another
// type is another fact.
func TestOnce(t *testing.T) {
	n := &Node{Case: &Case{}}
	found := 0
	for range 2 {
		if Once(n, "fact", func(*Node) []int { found++; return nil }) != nil ||
			Once(n, "fact", func(*Node) int { found++; return 0 }) != 0 ||
			Once(n.Case, "fact", func(*Case) string { found++; return "" }) != "" {
			t.Error("found what is not there")
		}
	}
	if found != 3 {
		t.Errorf("found %d times", found)
	}
}
