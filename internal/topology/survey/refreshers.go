package survey

import (
	"cmp"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
)

// Refresher is a group of connections that refresh the map: of the same library, name, command and period.
type Refresher struct {
	// by lib-name and lib-ver, or by the client's name; empty if neither tells
	Library     string   `json:"library"`
	Name        string   `json:"name"` // by CLIENT SETNAME
	Command     string   `json:"command"`
	Connections string   `json:"connections"` // kept, or new for each refresh
	Count       int      `json:"count"`       // of connections, on all nodes
	Hosts       []string `json:"hosts"`       // some of them
	HostCount   int      `json:"host_count"`
	Nodes       int      `json:"nodes"` // of the cluster, to which they connect
	// Callers are the connections that do nothing else; else the hosts and names that the connections have.
	Callers    int    `json:"callers"`
	Refreshes  int    `json:"refreshes"` // seen in the window; short-lived connections are seen by chance
	PeriodNs   int64  `json:"period_ns"` // of each caller; 0: not known
	PeriodFrom string `json:"period_from"`
	Slowest    string `json:"slowest,omitempty"` // their slowest refresh in SLOWLOG
	dedicated  bool   // all callers are connections that do nothing else
	asksAll    bool   // each refresh asks all nodes
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

// refreshers groups the callers in the lists of clients. Where callers of a group have other periods, it has a row for
// each.
func refreshers(s *Survey) []Refresher {
	groups := map[groupKey]*group{}
	for i, l := range s.Nodes {
		for _, c := range pollingConns(l, i) {
			k := groupKey{libraryOf(c.client), trimNumber(c.client.Name), refreshCommand(c.client), c.connections()}
			if groups[k] == nil {
				groups[k] = &group{callers: map[callerKey]*caller{}}
			}
			groups[k].add(c, tickWindow(l))
		}
		addSlowCalls(groups, l)
	}
	fine := listedEvery(s) < together
	out := []Refresher{}
	for k, g := range groups {
		for _, r := range g.rows(k, s.Start, fine) {
			if r.Refreshes > 0 || k.connections == connKept && r.Count > 0 {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b Refresher) int {
		return cmp.Or(cmp.Compare(b.Refreshes, a.Refreshes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Library,
			b.Library), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Command, b.Command),
			cmp.Compare(a.Connections, b.Connections), cmp.Compare(a.PeriodNs, b.PeriodNs))
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

// setPeriodsByCounters corrects the periods by the calls that the servers counted, which misses none. Connections that
// do nothing else, where no two refreshes of one were seen, have their share of the calls if they are alone. Where
// lists have missed refreshes, since other commands of the same connection came after them, the time between those seen
// is no period: it is the callers' share of the calls, if enough were seen, else it is not known.
func setPeriodsByCounters(list []Refresher, r *Refreshes, window time.Duration) {
	for _, c := range r.Commands {
		var rows []*Refresher
		seen := 0
		for i := range list {
			if list[i].Command == c.Command && list[i].Refreshes > 0 {
				rows = append(rows, &list[i])
				seen += list[i].Refreshes
			}
		}
		if len(rows) == 1 && rows[0].dedicated && rows[0].PeriodNs == 0 && rows[0].Connections == connKept {
			rows[0].setPeriod(float64(rows[0].Count)/c.PerSecond, fromCounters)
		}
		const complete, enough = 0.7, 10 // share of the calls that were seen; refreshes of a row
		if float64(seen) >= complete*c.PerSecond*window.Seconds() {
			continue
		}
		for _, x := range rows {
			switch {
			case x.dedicated || x.Connections == connNew:
			case x.Refreshes >= enough && !x.asksAll:
				x.setPeriod(float64(x.Callers)*float64(seen)/(c.PerSecond*float64(x.Refreshes)), fromCounters)
			default:
				x.PeriodNs, x.PeriodFrom = 0, ""
			}
		}
	}
}

const fromCounters = "the calls that the servers counted, by the refreshes that were seen of it"

func (r *Refresher) setPeriod(seconds float64, from string) {
	r.PeriodNs, r.PeriodFrom = roundTwoDigits(time.Duration(seconds*float64(time.Second))).Nanoseconds(), from
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
