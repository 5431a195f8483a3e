package cost

import "slowpath/internal/wire/cluster"

// Size is what the cost of a map command depends on.
type Size struct {
	Nodes   int `json:"nodes"`
	Masters int `json:"masters"`
	Ranges  int `json:"ranges"`  // of slots, of all masters together
	Entries int `json:"entries"` // nodes in CLUSTER SLOTS: each range lists its master and the master's replicas
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
