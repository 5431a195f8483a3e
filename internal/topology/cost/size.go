package cost

import "slowpath/internal/wire/cluster"

// Size is what the cost of writing a map depends on.
type Size struct {
	Nodes   int `json:"nodes"`
	Masters int `json:"masters"`
	Ranges  int `json:"ranges"`  // of slots, of all masters together
	Entries int `json:"entries"` // nodes that CLUSTER SLOTS names: each range has its master and the replicas of it
}

// SizeOf counts a map.
func SizeOf(m cluster.Map) Size {
	s := Size{Nodes: len(m.Nodes)}
	replicas := map[string]int{}
	for _, n := range m.Nodes {
		if !n.Primary {
			replicas[n.PrimaryID]++
		}
	}
	for _, n := range m.Nodes {
		if !n.Primary {
			continue
		}
		s.Masters++
		s.Ranges += len(n.Ranges)
		s.Entries += len(n.Ranges) * (1 + replicas[n.ID])
	}
	return s
}
