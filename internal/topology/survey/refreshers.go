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

// Refresher is a group of connections that refresh the map: of the same library, name and command.
type Refresher struct {
	// by lib-name and lib-ver, or by the client's name; empty if neither tells
	Library     string   `json:"library"`
	Name        string   `json:"name"` // by CLIENT SETNAME
	Command     string   `json:"command"`
	Connections string   `json:"connections"` // kept, or new for each refresh
	Count       int      `json:"count"`       // of connections, on all nodes
	Hosts       []string `json:"hosts"`       // some of them
	HostCount   int      `json:"host_count"`
	Nodes       int      `json:"nodes"`     // of the cluster, to which they connect
	Refreshes   int      `json:"refreshes"` // seen in the window; short-lived connections are seen by chance
	PeriodNs    int64    `json:"period_ns"` // of one connection, or of one host where connections are new; 0: not known
	PeriodFrom  string   `json:"period_from"`
	Slowest     string   `json:"slowest,omitempty"` // their slowest refresh in SLOWLOG
}

const (
	connKept = "kept"
	connNew  = "new"

	// CLIENT LIST has whole seconds: two times of one connection that are so close may be the same command.
	resolution = 1500 * time.Millisecond

	maxHosts = 5 // listed hosts
)

// isRefresh reports whether the last command of a connection asked for the map. A server before 7.0 gives "cluster" for
// all subcommands.
func isRefresh(c server.Client) bool {
	switch c.Cmd {
	case cost.Nodes.Stat(), cost.Slots.Stat(), cost.Shards.Stat(), "cluster":
		return true
	}
	return c.Name == lettuceName
}

// lettuceName is the name of the connections by which Lettuce refreshes the map (DefaultClusterTopologyRefresh). Their
// last command is INFO or CLIENT LIST.
const lettuceName = "lettuce#ClusterTopologyRefresh"

// groupKey is what refreshers are grouped by.
type groupKey struct{ library, name, command, connections string }

// pollingConn is one connection on one node, and the times of its refreshes.
type pollingConn struct {
	host     string
	openedAt time.Time
	times    []time.Time
	client   server.Client
}

// addTime adds the time of the last command.
func (s *pollingConn) addTime(at time.Time) {
	for _, m := range s.times {
		if at.Sub(m).Abs() < resolution {
			return
		}
	}
	s.times = append(s.times, at)
}

// connections reports whether it was opened for one refresh.
func (s *pollingConn) connections() string {
	if len(s.times) == 1 && s.times[0].Sub(s.openedAt) < resolution {
		return connNew
	}
	return connKept
}

// refreshers groups the polling connections in the lists of clients.
func refreshers(s *Survey) []Refresher {
	groups := map[groupKey]*group{}
	for i, l := range s.Nodes {
		for _, sg := range pollingConns(l) {
			k := groupKey{libraryOf(sg.client), trimNumber(sg.client.Name), refreshCommand(sg.client), sg.connections()}
			if groups[k] == nil {
				groups[k] = &group{hosts: map[string]int{}, nodes: map[int]bool{}}
			}
			groups[k].add(sg, i, s.Start, tickWindow(l))
		}
		addSlowCalls(groups, l)
	}
	out := []Refresher{}
	for k, g := range groups {
		if g.refreshes > 0 || k.connections == connKept && g.count > 0 {
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

// refreshCommand is the command by which a connection asks for the map; Lettuce sends INFO after it.
func refreshCommand(c server.Client) string {
	if strings.HasPrefix(c.Cmd, "cluster") {
		return c.Cmd
	}
	return cost.Nodes.Stat()
}

// trimNumber leaves out the number that some libraries append to the names of connections.
func trimNumber(name string) string { return strings.TrimRight(name, "0123456789-_:.") }

// pollingConns collects the connections of a node that were seen to ask for the map, over all lists.
func pollingConns(l *NodeState) []*pollingConn {
	by := map[int64]*pollingConn{}
	var order []*pollingConn
	for _, t := range l.Ticks {
		for _, c := range t.Clients {
			if !isRefresh(c) {
				continue
			}
			sg := by[c.ID]
			if sg == nil {
				sg = &pollingConn{
					host: hostOf(c.Addr), openedAt: t.At.Add(-time.Duration(c.Age) * time.Second),
					client: c,
				}
				by[c.ID] = sg
				order = append(order, sg)
			}
			sg.addTime(t.At.Add(-time.Duration(c.Idle) * time.Second))
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

// tickWindow is the time between the first and the last tick of a node.
func tickWindow(l *NodeState) time.Duration {
	if len(l.Ticks) < 2 {
		return 0
	}
	return l.Ticks[len(l.Ticks)-1].At.Sub(l.Ticks[0].At)
}

// group sums up the connections of one key.
type group struct {
	count, refreshes int
	hosts            map[string]int // refreshes by host
	nodes            map[int]bool
	window           time.Duration
	intervals        []time.Duration
	slowest          time.Duration
}

func (g *group) add(sg *pollingConn, node int, start time.Time, window time.Duration) {
	g.count++
	g.nodes[node] = true
	g.window = max(g.window, window)
	slices.SortFunc(sg.times, time.Time.Compare)
	for i, m := range sg.times {
		if m.After(start.Add(-time.Second)) { // whole seconds
			g.refreshes++
			g.hosts[sg.host]++
		} else {
			g.hosts[sg.host] += 0
		}
		if i > 0 {
			g.intervals = append(g.intervals, m.Sub(sg.times[i-1]))
		}
	}
}

// refresher is the group's row in the report. The period comes from the time between refreshes of one connection, else
// from the share of the kept connections that asked within the window: of those with a period of a minute one sixth
// does in ten seconds.
func (g *group) refresher(k groupKey) Refresher {
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
	case len(g.intervals) > 0:
		slices.Sort(g.intervals)
		r.PeriodNs, r.PeriodFrom = roundTwoDigits(stats.MedianUpper(g.intervals)).Nanoseconds(),
			"the time between refreshes of one connection"
	case k.connections == connKept && g.refreshes >= enough && g.window > 0:
		period := float64(g.window) * float64(g.count) / float64(g.refreshes)
		r.PeriodNs, r.PeriodFrom = roundTwoDigits(time.Duration(period)).Nanoseconds(),
			"the share of the connections that "+
				"asked in the window"
	}
	return r
}

// setPeriodsByCounters sets the period of kept connections that are the only ones to send a command: the server counts
// all their calls, also those between two lists.
func setPeriodsByCounters(list []Refresher, r *Refreshes) {
	for _, c := range r.Commands {
		var only *Refresher
		count := 0
		for i := range list {
			if list[i].Command == c.Command && list[i].Refreshes > 0 {
				only = &list[i]
				count++
			}
		}
		if count == 1 && only.Connections == connKept && c.PerSecond > 0 {
			only.PeriodNs = roundTwoDigits(time.Duration(float64(only.Count) / c.PerSecond *
				float64(time.Second))).Nanoseconds()
			only.PeriodFrom = "the calls that the servers counted, by the connections that were seen"
		}
	}
}

// roundTwoDigits keeps two digits; CLIENT LIST, with its whole seconds, is not more precise.
func roundTwoDigits(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(float64(d)))-1)
	return time.Duration(math.Round(float64(d)/step) * step)
}

// addSlowCalls adds the refreshes in SLOWLOG to the groups of the same client name; their connections may be gone.
func addSlowCalls(groups map[groupKey]*group, l *NodeState) {
	for _, c := range l.SlowCalls {
		for k, g := range groups {
			if k.name == trimNumber(c.Name) && (k.command == c.Command || k.command == "cluster") {
				g.slowest = max(g.slowest, c.Took)
			}
		}
	}
}
