package survey

import (
	"cmp"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/source/server"
	"slowpath/internal/stats"
	"slowpath/internal/topology/cost"
)

// Refresher is the connections of one kind that were seen to ask for the map: by the same library, name and command,
// from some hosts.
type Refresher struct {
	// as the client says (lib-name, lib-ver) or as its name gives away; empty where neither tells
	Library     string   `json:"library"`
	Name        string   `json:"name"` // that the connections have given themselves
	Command     string   `json:"command"`
	Connections string   `json:"connections"` // kept, or new for each refresh
	Count       int      `json:"count"`       // of connections that were seen, on all nodes
	Hosts       []string `json:"hosts"`       // some of them
	HostCount   int      `json:"host_count"`
	Nodes       int      `json:"nodes"`     // of the cluster, on which they were seen
	Refreshes   int      `json:"refreshes"` // that were seen in the window; short-lived connections are seen by chance
	PeriodNs    int64    `json:"period_ns"` // of one connection, or of one host where connections are new; 0: not known
	PeriodFrom  string   `json:"period_from"`
	Slowest     string   `json:"slowest,omitempty"` // the slowest refresh that SLOWLOG has of them
}

const (
	kept  = "kept"
	fresh = "new"

	// CLIENT LIST has whole seconds: two moments of one connection that are so close may be the same command.
	resolution = 1500 * time.Millisecond

	maxHosts = 5 // that are named
)

// refreshOf recognises a connection whose last command asked for the map. "cluster" is what a server before 7.0 says of
// all subcommands.
func refreshOf(c server.Client) bool {
	switch c.Cmd {
	case cost.Nodes.Stat(), cost.Slots.Stat(), cost.Shards.Stat(), "cluster":
		return true
	}
	return c.Name == lettuceName
}

// lettuceName is what Lettuce calls the connections over which it refreshes its topology
// (DefaultClusterTopologyRefresh), since it closes them after INFO or CLIENT LIST.
const lettuceName = "lettuce#ClusterTopologyRefresh"

// kind is what refreshers are grouped by.
type kind struct{ library, name, command, connections string }

// sighting is one connection on one node, and the moments at which it asked.
type sighting struct {
	host    string
	born    time.Time
	moments []time.Time
	client  server.Client
}

// seen adds the moment of the last command.
func (s *sighting) seen(at time.Time) {
	for _, m := range s.moments {
		if at.Sub(m).Abs() < resolution {
			return
		}
	}
	s.moments = append(s.moments, at)
}

// connections reports whether it was opened to ask once.
func (s *sighting) connections() string {
	if len(s.moments) == 1 && s.moments[0].Sub(s.born) < resolution {
		return fresh
	}
	return kept
}

// refreshers groups what the listings of clients show.
func refreshers(s *Survey) []Refresher {
	groups := map[kind]*group{}
	for i, l := range s.Looks {
		for _, sg := range sightings(l) {
			k := kind{libraryOf(sg.client), plainName(sg.client.Name), commandOf(sg.client), sg.connections()}
			if groups[k] == nil {
				groups[k] = &group{hosts: map[string]int{}, nodes: map[int]bool{}}
			}
			groups[k].add(sg, i, s.Start, windowOf(l))
		}
		slowNames(groups, l)
	}
	out := []Refresher{}
	for k, g := range groups {
		if g.refreshes > 0 || k.connections == kept && g.count > 0 {
			out = append(out, g.refresher(k))
		}
	}
	slices.SortFunc(out, func(a, b Refresher) int {
		return cmp.Or(cmp.Compare(b.Refreshes, a.Refreshes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Library,
			b.Library), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Command, b.Command),
			cmp.Compare(a.Connections, b.Connections))
	})
	return out
}

// commandOf is that of a connection which asks for the map; of Lettuce's the last command may be the INFO after it.
func commandOf(c server.Client) string {
	if strings.HasPrefix(c.Cmd, "cluster") {
		return c.Cmd
	}
	return cost.Nodes.Stat()
}

// plainName leaves the numbers out that some libraries put into the names of connections.
func plainName(name string) string { return strings.TrimRight(name, "0123456789-_:.") }

// sightings collects the connections of a node that were seen to ask, over all listings.
func sightings(l *Look) []*sighting {
	by := map[int64]*sighting{}
	var order []*sighting
	for _, t := range l.Ticks {
		for _, c := range t.Clients {
			if !refreshOf(c) {
				continue
			}
			sg := by[c.ID]
			if sg == nil {
				sg = &sighting{host: hostOf(c.Addr), born: t.At.Add(-time.Duration(c.Age) * time.Second), client: c}
				by[c.ID] = sg
				order = append(order, sg)
			}
			sg.seen(t.At.Add(-time.Duration(c.Idle) * time.Second))
		}
	}
	return order
}

func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// windowOf is the time between the first and the last tick of a node.
func windowOf(l *Look) time.Duration {
	if len(l.Ticks) < 2 {
		return 0
	}
	return l.Ticks[len(l.Ticks)-1].At.Sub(l.Ticks[0].At)
}

// group adds up the sightings of one kind.
type group struct {
	count, refreshes int
	hosts            map[string]int // refreshes by host
	nodes            map[int]bool
	window           time.Duration
	spacings         []time.Duration
	slowest          time.Duration
}

func (g *group) add(sg *sighting, node int, start time.Time, window time.Duration) {
	g.count++
	g.nodes[node] = true
	g.window = max(g.window, window)
	slices.SortFunc(sg.moments, time.Time.Compare)
	for i, m := range sg.moments {
		if m.After(start.Add(-time.Second)) { // whole seconds
			g.refreshes++
			g.hosts[sg.host]++
		} else {
			g.hosts[sg.host] += 0
		}
		if i > 0 {
			g.spacings = append(g.spacings, m.Sub(sg.moments[i-1]))
		}
	}
}

// refresher is what the group shows. The period comes from the spacing of the moments of one connection where there is
// one, else from how many of the connections that are kept asked in the window: of those with a period of a minute a
// sixth does in ten seconds.
func (g *group) refresher(k kind) Refresher {
	r := Refresher{
		Library: k.library, Name: k.name, Command: k.command, Connections: k.connections, Count: g.count,
		HostCount: len(g.hosts), Nodes: len(g.nodes), Refreshes: g.refreshes,
	}
	for host := range g.hosts {
		r.Hosts = append(r.Hosts, host)
	}
	slices.Sort(r.Hosts)
	r.Hosts = r.Hosts[:min(maxHosts, len(r.Hosts))]
	if g.slowest > 0 {
		r.Slowest = format.Duration(g.slowest)
	}
	const enough = 5 // refreshes; fewer say little about a rate
	switch {
	case len(g.spacings) > 0:
		slices.Sort(g.spacings)
		r.PeriodNs, r.PeriodFrom = round(stats.MedianUpper(g.spacings)).Nanoseconds(),
			"the time between refreshes of one connection"
	case k.connections == kept && g.refreshes >= enough && g.window > 0:
		period := float64(g.window) * float64(g.count) / float64(g.refreshes)
		r.PeriodNs, r.PeriodFrom = round(time.Duration(period)).Nanoseconds(), "the share of the connections that "+
			"asked in the window"
	}
	return r
}

// byCounters settles the period of the only connections that ask with a command, where they are kept: the server counts
// their calls, also those between two listings.
func byCounters(list []Refresher, r *Refreshes) {
	for _, c := range r.Commands {
		var only *Refresher
		count := 0
		for i := range list {
			if list[i].Command == c.Command && list[i].Refreshes > 0 {
				only = &list[i]
				count++
			}
		}
		if count == 1 && only.Connections == kept && c.PerSecond > 0 {
			only.PeriodNs = round(time.Duration(float64(only.Count) / c.PerSecond * float64(time.Second))).Nanoseconds()
			only.PeriodFrom = "the calls that the servers counted, by the connections that were seen"
		}
	}
}

// round keeps two digits: more would be more than the whole seconds of CLIENT LIST tell.
func round(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(float64(d)))-1)
	return time.Duration(math.Round(float64(d)/step) * step)
}

// slowNames adds what SLOWLOG has: refreshes of a library that tells its name, among them those whose connections are
// gone.
func slowNames(groups map[kind]*group, l *Look) {
	for _, c := range l.Slow {
		for k, g := range groups {
			if k.name == plainName(c.Name) && (k.command == c.Command || k.command == "cluster") {
				g.slowest = max(g.slowest, c.Took)
			}
		}
	}
}
