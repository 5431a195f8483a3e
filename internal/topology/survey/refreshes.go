package survey

import (
	"math"
	"slices"
	"strings"
	"time"

	"slowpath/internal/topology/cost"
)

// Refreshes is what the refreshes of all clients cost the servers, counted by the servers over the window, without
// slowpath's own.
type Refreshes struct {
	Counted        bool         `json:"counted"` // false where no node's commandstats could be read over a window
	Commands       []Refreshing `json:"commands"`
	Share          float64      `json:"share"`     // of the time of a node's main thread, mean of the nodes
	ShareMax       float64      `json:"share_max"` // of the node where it is most
	ShareMaxNode   string       `json:"share_max_node"`
	BusyMax        float64      `json:"busy_max"`        // CPU time of that node, share of one core
	NewConnections float64      `json:"new_connections"` // per second and node
	InfoCalls      float64      `json:"info_calls"`      // per second and node, without slowpath's
	// about as many new connections as refreshes: they seem to come on new ones
	Fresh          bool        `json:"fresh"`
	LettuceLike    bool        `json:"lettuce_like"`  // and as many INFO: so refreshes Lettuce
	Nodes          []NodeCost  `json:"nodes"`         // those with the most, at most ten
	NodesCounted   int         `json:"nodes_counted"` // how many could be counted
	dominant       *Refreshing // the command that takes most
	perNode        []NodeCost  // all
	masters, spare []NodeCost  // of masters, of replicas
	elapsed        time.Duration
}

// Refreshing is one command by which clients ask for the map.
type Refreshing struct {
	Command   string  `json:"command"`          // as in commandstats
	PerSecond float64 `json:"calls_per_second"` // of all nodes together
	PerNode   float64 `json:"calls_per_second_per_node"`
	PerCallNs int64   `json:"per_call_ns"`
	Share     float64 `json:"share"`  // of the time of a node's main thread, mean of the nodes
	Likely    string  `json:"likely"` // before 7.0: the subcommand that its cost per call speaks for
}

// NodeCost is what refreshes cost one node.
type NodeCost struct {
	Address   string  `json:"address"`
	Master    bool    `json:"master"`
	PerSecond float64 `json:"calls_per_second"`
	Share     float64 `json:"share"` // of the time of the main thread
	// CPU time of the process's main thread (before 6.2: of the process), share of one core
	Busy float64 `json:"busy"`
}

// usage is the growth of a counter pair over the window.
type usage struct{ calls, usec float64 }

// grown is what a node counted between its first and its last tick. A counter that fell was reset.
func (l *Look) grown(name string) (usage, bool) {
	first, last := l.counted()
	if last == nil {
		return usage{}, false
	}
	c0, u0, _, _ := first.Stats.Command(name)
	c1, u1, _, ok := last.Stats.Command(name)
	if !ok {
		return usage{}, true // never called
	}
	return usage{c1 - c0, u1 - u0}, c1 >= c0 && u1 >= u0
}

// counted are the first and last tick with commandstats.
func (l *Look) counted() (first, last *Tick) {
	for i := range l.Ticks {
		if len(l.Ticks[i].Stats.Numbers) == 0 {
			continue
		}
		if first == nil {
			first = &l.Ticks[i]
		} else {
			last = &l.Ticks[i]
		}
	}
	return first, last
}

// whole reports whether the server counts all subcommands of CLUSTER as one: before 7.0.
func (l *Look) whole() bool {
	_, last := l.counted()
	if last == nil {
		return false
	}
	_, _, whole, ok := last.Stats.Command(cost.Nodes.Stat())
	return ok && whole
}

// statsOf are the names under which a node counts refreshes.
func (l *Look) statsOf() []string {
	if l.whole() {
		return []string{"cluster"}
	}
	return []string{cost.Nodes.Stat(), cost.Slots.Stat(), cost.Shards.Stat()}
}

// countRefreshes sums the window up.
func countRefreshes(s *Survey) Refreshes {
	r := Refreshes{Commands: []Refreshing{}, Nodes: []NodeCost{}}
	sums := map[string]usage{}
	for _, l := range s.Looks {
		first, last := l.counted()
		if last == nil {
			continue
		}
		seconds := last.At.Sub(first.At).Seconds()
		cost, ok := l.costOver(seconds, sums)
		if !ok || seconds <= 0 {
			continue
		}
		r.perNode = append(r.perNode, cost)
		r.elapsed += last.At.Sub(first.At)
		r.NewConnections += max(0,
			l.End.Numbers["total_connections_received"]-l.Begin.Numbers["total_connections_received"]) / seconds
		info, _ := l.grown("info")
		own := float64(len(l.Ticks) - 1)
		r.InfoCalls += max(0, info.calls-own) / seconds
	}
	r.finish(s, sums)
	return r
}

// costOver is what refreshes cost one node; it adds them to sums, which are per command. The seconds of a node weigh
// its calls: sums are per second.
func (l *Look) costOver(seconds float64, sums map[string]usage) (NodeCost, bool) {
	c := NodeCost{Address: l.Addr, Master: l.isMaster(), Busy: l.busy(seconds)}
	for _, name := range l.statsOf() {
		u, ok := l.grown(name)
		if !ok {
			return c, false
		}
		c.PerSecond += u.calls / seconds
		c.Share += u.usec / 1e6 / seconds
		sum := sums[name]
		sums[name] = usage{sum.calls + u.calls/seconds, sum.usec + u.usec/seconds}
	}
	return c, true
}

// busy is the CPU time that INFO tells, as a share of one core.
func (l *Look) busy(seconds float64) float64 {
	sum := 0.0
	for _, mode := range []string{"user", "sys"} {
		name := "used_cpu_" + mode + "_main_thread"
		if _, ok := l.End.Numbers[name]; !ok {
			name = "used_cpu_" + mode
		}
		sum += l.End.Numbers[name] - l.Begin.Numbers[name]
	}
	if seconds <= 0 || sum < 0 || len(l.End.Numbers) == 0 || len(l.Begin.Numbers) == 0 {
		return 0
	}
	return sum / seconds
}

func (r *Refreshes) finish(s *Survey, sums map[string]usage) {
	n := float64(len(r.perNode))
	if r.NodesCounted = len(r.perNode); n == 0 {
		return
	}
	r.Counted = true
	r.NewConnections /= n
	r.InfoCalls /= n
	for _, name := range []string{cost.Nodes.Stat(), cost.Slots.Stat(), cost.Shards.Stat(), "cluster"} {
		u := sums[name]
		if u.calls == 0 {
			continue
		}
		r.Commands = append(r.Commands, Refreshing{
			Command: name, PerSecond: u.calls, PerNode: u.calls / n,
			PerCallNs: int64(u.usec / u.calls * 1e3), Share: u.usec / 1e6 / n,
			Likely: likely(name, u, s.Looks[0].Measured),
		})
	}
	for i := range r.Commands {
		if r.dominant == nil || r.Commands[i].Share > r.dominant.Share {
			r.dominant = &r.Commands[i]
		}
	}
	asked := 0.0
	for _, c := range r.perNode {
		asked += c.PerSecond
		r.Share += c.Share / n
		if c.Share > r.ShareMax {
			r.ShareMax, r.ShareMaxNode, r.BusyMax = c.Share, c.Address, c.Busy
		}
		if c.Master {
			r.masters = append(r.masters, c)
		} else {
			r.spare = append(r.spare, c)
		}
	}
	const few = 0.5 // calls per second and node; below, a ratio is chance
	if asked /= n; asked >= few {
		r.Fresh = about(r.NewConnections, asked)
		r.LettuceLike = r.Fresh && about(r.InfoCalls, asked)
	}
	slices.SortStableFunc(r.perNode, func(a, b NodeCost) int { return cmpFloat(b.Share, a.Share) })
	r.Nodes = append(r.Nodes, r.perNode[:min(10, len(r.perNode))]...)
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// about reports whether a rate is that of the other, but for a fifth: clients come and go, and others connect, too.
func about(a, b float64) bool { return math.Abs(a-b) <= 0.2*b }

// likely tells the subcommand by its cost per call, where the two that a server before 7.0 has were measured and differ
// enough.
func likely(name string, u usage, measured []cost.Measured) string {
	if name != "cluster" || u.calls == 0 {
		return ""
	}
	perCall := u.usec / u.calls
	best, distance, second := "", math.Inf(1), math.Inf(1)
	for _, m := range measured {
		d := math.Abs(math.Log(perCall / (float64(m.PerCall.Nanoseconds()) / 1e3)))
		if d < distance {
			best, distance, second = strings.ToLower(m.Command.String()), d, distance
		} else {
			second = min(second, d)
		}
	}
	if math.IsNaN(distance) || distance > math.Ln2 || second-distance < 0.2 {
		return "" // neither, or both
	}
	return strings.Replace(best, " ", "|", 1)
}

// command is the one that takes most, as one of the three.
func (r *Refreshes) command() (cost.Command, bool) {
	if r.dominant == nil {
		return "", false
	}
	name := r.dominant.Command
	if name == "cluster" {
		name = r.dominant.Likely
	}
	_, sub, ok := strings.Cut(name, "|")
	return cost.Command(sub), ok
}
