package caller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
)

// Crowd is how many connections to a node a process has, or a host where its processes are not known.
type Crowd struct {
	// Who has them.
	Who Who
	// Connections is their number.
	Connections int
}

// Crowds are who had the connections to the node when CLIENT LIST had most of them, those with most first. Without
// CLIENT LIST they are the processes of this host whose connections were seen.
func Crowds(n *facts.Node) []Crowd {
	var most ClientList
	for _, l := range ClientLists(n) {
		if len(l.Clients) > len(most.Clients) {
			most = l
		}
	}
	if len(most.Clients) > 0 {
		return crowdsIn(n, most.Clients, most.TimeNs)
	}
	var whos []Who
	own := hosts.OwnPIDs(n.Case)
	for _, address := range slices.Sorted(maps.Keys(owners(n))) {
		if o, ok := endAt(n, address, n.EndNs); ok && !own[o.pid] {
			whos = append(whos, WhoOf(n, address, "", n.EndNs))
		}
	}
	return crowdsOf(whos)
}

// crowdsIn are those of clients that CLIENT LIST had at a time, without slowpath's own.
func crowdsIn(n *facts.Node, clients []Client, at int64) []Crowd {
	var whos []Who
	for _, c := range clients {
		if !c.Self {
			whos = append(whos, WhoOf(n, c.Addr, "", at))
		}
	}
	return crowdsOf(whos)
}

func crowdsOf(connections []Who) []Crowd {
	byKey := map[string]*Crowd{}
	for _, w := range connections {
		c := byKey[w.Key()]
		if c == nil {
			c = &Crowd{Who: w}
			byKey[w.Key()] = c
		}
		c.Connections++
	}
	out := make([]Crowd, 0, len(byKey))
	for _, c := range byKey {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Crowd) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.Who.Key(), b.Who.Key()))
	})
	return out
}

// CrowdsText lists the first of them for a message: "worker.py[812] run by app (98), 10.0.0.7 (2)".
func CrowdsText(crowds []Crowd, most int) string {
	var out []string
	for _, c := range crowds[:min(len(crowds), most)] {
		out = append(out, fmt.Sprintf("%s (%d)", c.Who.CallerText(), c.Connections))
	}
	return strings.Join(out, ", ")
}
