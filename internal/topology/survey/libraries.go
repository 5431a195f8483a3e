package survey

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
)

// Library is a client library with connections to the cluster, and how it refreshes the map.
type Library struct {
	Library     string `json:"library"`
	Connections int    `json:"connections"` // on all nodes together, at the last listing of each
	Hosts       int    `json:"hosts"`
	Refreshes   string `json:"refreshes"` // how it refreshes the map; empty if that is not known
	Option      string `json:"option"`    // what to set
}

// libraryOf is the client's lib-name and lib-ver, or what its name tells.
func libraryOf(c server.Client) string {
	if c.LibName != "" {
		return strings.TrimSpace(c.LibName + " " + c.LibVer)
	}
	if strings.HasPrefix(c.Name, "lettuce#") {
		return "lettuce"
	}
	return ""
}

// libraries counts the connections of each library, whatever they do.
func libraries(s *Survey) []Library {
	count, hosts := map[string]int{}, map[string]map[string]bool{}
	for _, l := range s.Nodes {
		for i := len(l.Ticks) - 1; i >= 0; i-- {
			if !l.Ticks[i].HasClients {
				continue
			}
			for _, c := range l.Ticks[i].Clients {
				lib := libraryOf(c)
				if hosts[lib] == nil {
					hosts[lib] = map[string]bool{}
				}
				count[lib]++
				hosts[lib][hostOf(c.Addr)] = true
			}
			break
		}
	}
	out := []Library{}
	for lib, n := range count {
		h, _ := cost.PolicyOf(lib)
		out = append(out, Library{
			Library: lib, Connections: n, Hosts: len(hosts[lib]), Refreshes: h.Refreshes,
			Option: h.LongerFor(cost.LongerPeriod),
		})
	}
	slices.SortFunc(out, func(a, b Library) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.Library, b.Library))
	})
	return out
}
