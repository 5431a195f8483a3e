package join

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
)

// pairsOf counts the calls of which a recording has the server's end, the first index, and another the client's.
func pairsOf(recs []*recording.Recording) [][]int {
	served, common := map[callKey][]int{}, map[[2]int]bool{}
	for i, r := range recs {
		for k := range callsBySide(r, recording.Server) {
			served[k] = append(served[k], i)
		}
	}
	for j, c := range recs {
		for k := range callsBySide(c, recording.Client) {
			for _, i := range served[k] {
				common[[2]int{i, j}] = i != j
			}
		}
	}
	pairs := make([][]int, len(recs))
	for i := range recs {
		pairs[i] = make([]int, len(recs))
		for j := range recs {
			if common[[2]int{i, j}] {
				pairs[i][j] = len(match(recs[i], recs[j]).pairs)
			}
		}
	}
	return pairs
}

// serversOf are the recordings of servers' hosts: that with most calls, and those that served more of them than they
// made. The calls between two of these are not joined: the account takes them for one by their times.
func serversOf(pairs [][]int) (servers []int) {
	served, made := make([]int, len(pairs)), make([]int, len(pairs))
	for i := range pairs {
		for j, n := range pairs[i] {
			served[i], made[j] = served[i]+n, made[j]+n
		}
		servers = append(servers, i)
	}
	slices.SortStableFunc(servers, func(a, b int) int { return cmp.Compare(served[b], served[a]) })
	first := servers[0]
	return slices.DeleteFunc(servers, func(i int) bool { return served[i] == 0 || i != first && served[i] <= made[i] })
}

// clientPart is what a recording of a clients' host has of the calls to one of the servers' hosts.
type clientPart struct {
	host int // index
	of   *recording.Recording
}

// partsOf parts the calls of a clients' host by the hosts of their servers, that with most of them first: this one has
// also the calls to servers that are on none.
func partsOf(client *recording.Recording, hosts []*recording.Recording) []clientPart {
	if len(hosts) == 1 {
		return []clientPart{{0, client}}
	}
	calls := map[int64]int{}  // host by the id of a call
	nodes := map[string]int{} // and by the client's name of a node
	var conns []map[string]bool
	var found []matches
	for k, host := range hosts {
		conns, found = append(conns, serverConns(host)), append(found, match(host, client))
		for _, p := range found[k].pairs {
			calls[p.client.ID] = k
		}
	}
	order := make([]int, len(hosts))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(found[b].pairs), len(found[a].pairs)) })
	for _, k := range order {
		for name := range found[k].nodeNames() {
			if _, known := nodes[name]; !known {
				nodes[name] = k
			}
		}
	}
	hostOf := func(c recording.Call) int {
		if k, joined := calls[c.ID]; joined {
			return k
		}
		if k, known := nodes[c.Node]; known {
			return k
		}
		if k := slices.IndexFunc(conns, func(known map[string]bool) bool { return known[c.Conn] }); k >= 0 {
			return k
		}
		return order[0]
	}
	var parts []clientPart
	for n, k := range order {
		of := client.Without()
		of.Calls = slices.DeleteFunc(of.Calls, func(c recording.Call) bool { return hostOf(c) != k })
		of.Histograms = slices.DeleteFunc(of.Histograms, func(h recording.Histogram) bool {
			at, known := nodes[h.Node]
			return known && at != k || !known && n > 0
		})
		if n == 0 || len(of.Calls) > 0 {
			parts = append(parts, clientPart{k, of})
		}
	}
	return parts
}

// callsAlone is the recording of a clients' host without what is not of single connections or nodes.
func callsAlone(r *recording.Recording) *recording.Recording {
	out := recording.New()
	for _, c := range r.Calls {
		out.Call(c, r.SegmentsOf(c.ID)...)
	}
	for _, h := range r.Histograms {
		out.Histogram(h)
	}
	for _, e := range r.Events {
		if ofConns(e.Kind) {
			out.Event(e)
		}
	}
	return out
}
