package survey

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"slowpath/internal/topology/cost"
)

// Refreshes is what the map refreshes of all clients cost the servers, counted by the servers over the window, without
// those of slowpath.
type Refreshes struct {
	Counted        bool         `json:"counted"` // false where no node's commandstats could be read over a window
	Commands       []Refreshing `json:"commands"`
	Share          float64      `json:"share"`     // of the time of a node's main thread, mean of the nodes
	ShareMax       float64      `json:"share_max"` // of the node where it is most
	ShareMaxNode   string       `json:"share_max_node"`
	BusyMax        float64      `json:"busy_max"`        // CPU time of that node, share of one core
	NewConnections float64      `json:"new_connections"` // per second and node
	InfoCalls      float64      `json:"info_calls"`      // per second and node, without slowpath's
	// about as many new connections as refreshes: refreshes seem to use new ones
	Fresh             bool        `json:"fresh"`
	LettuceLike       bool        `json:"lettuce_like"`  // and as many INFO: Lettuce refreshes like that
	Nodes             []NodeCost  `json:"nodes"`         // those with the most, at most ten
	NodesCounted      int         `json:"nodes_counted"` // how many could be counted
	dominant          *Refreshing // the command that takes most time
	perNode           []NodeCost  // all nodes
	masters, replicas []NodeCost  // of masters, of replicas
	elapsed           time.Duration
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

// growth is what a node counted between its first and its last tick. A counter that fell was reset.
func (s *NodeState) growth(name string) (usage, bool) {
	first, last := s.countedTicks()
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

// countedTicks are the first and last tick with commandstats.
func (s *NodeState) countedTicks() (first, last *Tick) {
	for i := range s.Ticks {
		if len(s.Ticks[i].Stats.Numbers) == 0 {
			continue
		}
		if first == nil {
			first = &s.Ticks[i]
		} else {
			last = &s.Ticks[i]
		}
	}
	return first, last
}

// statTicks is how many ticks have commandstats.
func (s *NodeState) statTicks() (n int) {
	for _, t := range s.Ticks {
		if len(t.Stats.Numbers) > 0 {
			n++
		}
	}
	return n
}

// countsClusterAsOne reports whether the server counts all subcommands of CLUSTER as one, as before 7.0.
func (s *NodeState) countsClusterAsOne() bool {
	_, last := s.countedTicks()
	if last == nil {
		return false
	}
	_, _, whole, ok := last.Stats.Command(cost.Nodes.Stat())
	return ok && whole
}

// statNames are the names in commandstats under which a node counts refreshes.
func (s *NodeState) statNames() []string {
	if s.countsClusterAsOne() {
		return []string{"cluster"}
	}
	return []string{cost.Nodes.Stat(), cost.Slots.Stat(), cost.Shards.Stat()}
}

// countRefreshes sums the window up.
func countRefreshes(s *Survey) Refreshes {
	r := Refreshes{Commands: []Refreshing{}, Nodes: []NodeCost{}}
	sums := map[string]usage{}
	for _, l := range s.Nodes {
		first, last := l.countedTicks()
		if last == nil {
			continue
		}
		seconds := last.At.Sub(first.At).Seconds()
		cost, ok := l.refreshCost(seconds, sums)
		if !ok || seconds <= 0 {
			continue
		}
		r.perNode = append(r.perNode, cost)
		r.elapsed += last.At.Sub(first.At)
		r.NewConnections += max(0,
			l.End.Numbers["total_connections_received"]-l.Begin.Numbers["total_connections_received"]) / seconds
		info, _ := l.growth("info")
		own := float64(l.statTicks() - 1)
		r.InfoCalls += max(0, info.calls-own) / seconds
	}
	r.finish(s, sums)
	return r
}

// refreshCost is what refreshes cost one node. It adds them to sums, which are per command and per second.
func (s *NodeState) refreshCost(seconds float64, sums map[string]usage) (NodeCost, bool) {
	c := NodeCost{Address: s.Addr, Master: s.isMaster(), Busy: s.busy(seconds)}
	for _, name := range s.statNames() {
		u, ok := s.growth(name)
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

// busy is the CPU time in INFO, as a share of one core.
func (s *NodeState) busy(seconds float64) float64 {
	sum := 0.0
	for _, mode := range []string{"user", "sys"} {
		name := "used_cpu_" + mode + "_main_thread"
		if _, ok := s.End.Numbers[name]; !ok {
			name = "used_cpu_" + mode
		}
		sum += s.End.Numbers[name] - s.Begin.Numbers[name]
	}
	if seconds <= 0 || sum < 0 || len(s.End.Numbers) == 0 || len(s.Begin.Numbers) == 0 {
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
			Likely: likelyCommand(name, u, s.Nodes[0].Measured),
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
			r.replicas = append(r.replicas, c)
		}
	}
	const few = 0.5 // calls per second and node; below it a ratio means nothing
	if asked /= n; asked >= few {
		r.Fresh = similar(r.NewConnections, asked)
		r.LettuceLike = r.Fresh && similar(r.InfoCalls, asked)
	}
	slices.SortStableFunc(r.perNode, func(a, b NodeCost) int { return cmp.Compare(b.Share, a.Share) })
	r.Nodes = append(r.Nodes, r.perNode[:min(10, len(r.perNode))]...)
}

// similar reports whether two rates differ by less than 20 %: other clients connect and leave, too.
func similar(a, b float64) bool { return math.Abs(a-b) <= 0.2*b }

// likelyCommand infers the subcommand from its cost per call, if the two that a server before 7.0 has were measured and
// differ enough.
func likelyCommand(name string, u usage, measured []cost.Measured) string {
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

// dominantCommand is the command that takes most time.
func (r *Refreshes) dominantCommand() (cost.Command, bool) {
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
