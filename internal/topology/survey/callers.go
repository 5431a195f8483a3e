package survey

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/source/server"
	"slowpath/internal/stats"
	"slowpath/internal/topology/cost"
)

// pollingConn is one connection on one node, and the times of its refreshes.
type pollingConn struct {
	node     int
	openedAt time.Time
	times    []time.Time
	client   server.Client
	others   bool // it was seen to send another command after its first refresh

	refreshed bool  // at the last list
	second    int64 // of its life, in which it sent its last command
	listedAt  time.Time
}

// listed notes what a list says of the connection. Its age and how long it has been idle are whole seconds of the same
// clock of the server: their difference, the second of its life in which it asked last, changes with a command alone.
// A refresh is a new one if that is another second, or if the last command of the list before was another.
func (c *pollingConn) listed(x server.Client, at time.Time) {
	refresh := isRefresh(x)
	when, second := at.Add(-time.Duration(x.Idle)*time.Second), x.Age-x.Idle
	if refresh && (len(c.times) == 0 || !c.refreshed || second != c.second) {
		if !c.listedAt.IsZero() && when.Before(c.listedAt) {
			when = c.listedAt // it came after the list before
		}
		c.times = append(c.times, when)
	}
	c.others = c.others || !refresh && len(c.times) > 0
	c.refreshed, c.second, c.listedAt = refresh, second, at
}

// connections reports whether it was opened for one refresh.
func (c *pollingConn) connections() string {
	if len(c.times) == 1 && !c.others && c.times[0].Sub(c.openedAt) < resolution {
		return connNew
	}
	return connKept
}

// dedicated reports whether it does nothing but ask for the map: a single refresh says that only if nothing came after
// it for a while.
func (c *pollingConn) dedicated() bool {
	return !c.others && (len(c.times) > 1 || c.listedAt.Sub(c.times[0]) >= resolution)
}

// pollingConns collects the connections of a node that were seen to ask for the map, over all lists.
func pollingConns(l *NodeState, node int) []*pollingConn {
	by := map[int64]*pollingConn{}
	var order []*pollingConn
	for _, t := range l.Ticks {
		for _, x := range t.Clients {
			c := by[x.ID]
			if c == nil {
				c = &pollingConn{node: node, openedAt: t.At.Add(-time.Duration(x.Age) * time.Second), client: x}
				by[x.ID] = c
				order = append(order, c)
			}
			if isRefresh(x) {
				c.client = x
			}
			c.listed(x, t.At)
		}
	}
	return slices.DeleteFunc(order, func(c *pollingConn) bool { return len(c.times) == 0 })
}

// callerKey tells callers apart: a kept connection that does nothing else is one; of others those of a host and name
// are.
type callerKey struct {
	host, name string
	node       int // of a connection that does nothing else
	conn       int64
}

// caller asks for the map with a period of its own.
type caller struct {
	conns []*pollingConn
}

// group has the callers of one key.
type group struct {
	callers map[callerKey]*caller
	window  time.Duration
	slowest time.Duration
}

func (g *group) add(c *pollingConn, window time.Duration) {
	k := callerKey{host: hostOf(c.client.Addr), name: c.client.Name}
	if c.dedicated() && c.connections() == connKept {
		k.node, k.conn = c.node, c.client.ID
	}
	if g.callers[k] == nil {
		g.callers[k] = &caller{}
	}
	g.callers[k].conns = append(g.callers[k].conns, c)
	g.window = max(g.window, window)
}

// together is how long a client needs to ask all nodes; lists must come more often to tell that from a period.
const together = 300 * time.Millisecond

// listedEvery is the time between two lists of clients, of the node with most of them.
func listedEvery(s *Survey) time.Duration {
	every := time.Hour
	for _, l := range s.Nodes {
		lists := 0
		for _, t := range l.Ticks {
			if t.HasClients {
				lists++
			}
		}
		if lists > 1 {
			every = min(every, tickWindow(l)/time.Duration(lists-1))
		}
	}
	return every
}

// period is the median time between two refreshes, or 0. What a client asks several nodes at once is one refresh.
func (c *caller) period(all bool) time.Duration {
	var times []time.Time
	for _, x := range c.conns {
		times = append(times, x.times...)
	}
	slices.SortFunc(times, time.Time.Compare)
	if all {
		times = slices.CompactFunc(times, func(a, b time.Time) bool { return a.Sub(b).Abs() < together })
	}
	var intervals []time.Duration
	for i := 1; i < len(times); i++ {
		intervals = append(intervals, times[i].Sub(times[i-1]))
	}
	if len(intervals) == 0 {
		return 0
	}
	slices.Sort(intervals)
	return stats.MedianUpper(intervals)
}

// sameFactor is the ratio up to which two periods are taken for the same: those of whole seconds differ by as much.
const sameFactor = 1.4

// rows has a row for the callers of each period. Callers of which too little was seen to have one are in the row of the
// others if that is one, else in a row of their own.
func (g *group) rows(k groupKey, start time.Time, fine bool) []Refresher {
	policy, known := cost.PolicyOf(k.library)
	all := known && policy.AskAll || !known && fine
	periods := map[*caller]time.Duration{}
	for _, c := range g.callers {
		if k.connections == connKept {
			periods[c] = c.period(all)
		}
	}
	sorted := slices.Collect(maps.Values(g.callers))
	slices.SortFunc(sorted, func(a, b *caller) int { return cmp.Compare(periods[a], periods[b]) })
	var classes [][]*caller
	unknown := []*caller{}
	for _, c := range sorted {
		p := periods[c]
		last := len(classes) - 1
		switch {
		case p == 0:
			unknown = append(unknown, c)
		case last < 0 || float64(p) > sameFactor*float64(periods[classes[last][0]]):
			classes = append(classes, []*caller{c})
		default:
			classes[last] = append(classes[last], c)
		}
	}
	if len(classes) == 1 {
		classes[0] = append(classes[0], unknown...)
	} else if len(unknown) > 0 {
		classes = append(classes, unknown)
	}
	var out []Refresher
	for _, class := range classes {
		out = append(out, g.row(k, class, periods, start, all))
	}
	return out
}

// row sums up callers of one period. It comes from the time between refreshes of a caller, else from the share of the
// kept connections that asked within the window: of those with a period of a minute one sixth does in ten seconds.
func (g *group) row(k groupKey, callers []*caller, periods map[*caller]time.Duration, start time.Time,
	all bool,
) Refresher {
	r := Refresher{
		Library: k.library, Name: k.name, Command: k.command, Connections: k.connections, Callers: len(callers),
		dedicated: true, asksAll: all,
	}
	hosts, nodes := map[string]bool{}, map[int]bool{}
	var known []time.Duration
	for _, c := range callers {
		for _, x := range c.conns {
			r.Count++
			r.dedicated = r.dedicated && x.dedicated()
			hosts[hostOf(x.client.Addr)], nodes[x.node] = true, true
			for _, at := range x.times {
				if at.After(start.Add(-time.Second)) { // whole seconds
					r.Refreshes++
				}
			}
		}
		if periods[c] > 0 {
			known = append(known, periods[c])
		}
	}
	r.HostCount, r.Nodes = len(hosts), len(nodes)
	r.Hosts = slices.Sorted(maps.Keys(hosts))
	r.Hosts = r.Hosts[:min(maxHosts, len(r.Hosts))]
	if g.slowest > 0 {
		r.Slowest = format.Duration(g.slowest)
	}
	const enough = 5 // refreshes; fewer say little about a rate
	switch {
	case len(known) > 0:
		slices.Sort(known)
		r.setPeriod(stats.MedianUpper(known).Seconds(), "the time between refreshes of a caller")
	case k.connections == connKept && r.Refreshes >= enough && g.window > 0:
		r.setPeriod(g.window.Seconds()*float64(r.Count)/float64(r.Refreshes),
			"the share of the connections that asked in the window")
	}
	return r
}
