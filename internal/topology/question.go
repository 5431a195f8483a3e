package topology

import (
	"slices"
	"time"
)

// Question is what to reckon with. What is 0 is taken from what was seen, and where nothing was, from what is usual.
type Question struct {
	Version string // of this program
	Nodes   []int
	Clients int
	Period  time.Duration
}

const (
	usualPeriod  = time.Minute // Lettuce's, go-redis', StackExchange.Redis'
	usualClients = 1000
)

// usualNodes are sizes to reckon with beside the present one: incident 002's and its end (redis#6165 has 300).
var usualNodes = []int{80, 300}

// demand is how often clients ask, now or in the case that is reckoned.
type demand struct {
	command  Command
	clients  int
	period   time.Duration
	everyone bool    // each client asks all nodes
	perNode  float64 // calls per second and node
	seen     bool    // the rate was counted, not assumed
	notes    []string
}

// demandOf takes what was seen.
func (q Question) demandOf(r *Refreshes, list []Refresher, libs []Library, nodes int) demand {
	d := demand{command: Nodes, clients: q.Clients, period: q.Period}
	if c, ok := r.command(); ok {
		d.command = c
	}
	d.everyone = r.LettuceLike || anyEveryone(list) || d.command == Nodes && !anyOne(libs)
	if r.dominant != nil {
		d.perNode, d.seen = r.dominant.PerNode, true
	}
	if d.period == 0 {
		d.period = periodOf(list)
	}
	if d.period == 0 {
		d.period = usualPeriod
		d.notes = append(d.notes, "the period is assumed to be "+usualPeriod.String())
	}
	rate := d.perNode
	if !d.everyone {
		rate *= float64(nodes)
	}
	switch {
	case d.clients > 0:
	case d.seen:
		d.clients = max(1, int(rate*d.period.Seconds()+0.5))
	default:
		d.clients = usualClients
		d.notes = append(d.notes, "nobody was seen to refresh: 1000 clients are assumed")
	}
	if !d.seen {
		d.perNode = d.rate(nodes)
	}
	return d
}

// rate is calls per second and node with so many nodes.
func (d demand) rate(nodes int) float64 {
	rate := float64(d.clients) / d.period.Seconds()
	if !d.everyone {
		rate /= float64(max(1, nodes))
	}
	return rate
}

func anyEveryone(list []Refresher) bool {
	return slices.ContainsFunc(list, func(r Refresher) bool {
		h, ok := habitOf(r.Library)
		return ok && h.everyone && r.Refreshes > 0
	})
}

// anyOne reports whether libraries have connections that ask one node, and none that ask all.
func anyOne(libs []Library) bool {
	one := false
	for _, l := range libs {
		if h, ok := habitOf(l.Library); ok {
			if h.everyone {
				return false
			}
			one = true
		}
	}
	return one
}

func periodOf(list []Refresher) time.Duration {
	for _, r := range list {
		if r.PeriodNs > 0 && r.Refreshes > 0 {
			return time.Duration(r.PeriodNs)
		}
	}
	return 0
}

// WhatIf is what refreshing would cost on a version with so many nodes and clients.
type WhatIf struct {
	Server    string  `json:"server"` // the measured version, or "now" for the target's own
	Command   string  `json:"command"`
	Nodes     int     `json:"nodes"`
	Clients   int     `json:"clients"`
	PeriodNs  int64   `json:"period_ns"`
	AskAll    bool    `json:"ask_all"` // each client asks all nodes; else one
	PerCallNs int64   `json:"per_call_ns"`
	PerNode   float64 `json:"calls_per_second_per_node"`
	Share     float64 `json:"share"` // of the time of a node's main thread; above 1 it cannot be served
}

// whatIf reckons the versions for sizes of the cluster. The others are told by the version which Reference names; the target's own is among them, exactly measured.
func whatIf(q Question, d demand, m *Model, size Size) []WhatIf {
	out := []WhatIf{}
	if m == nil {
		return out
	}
	for _, version := range references {
		for _, c := range []Command{d.command, Slots} {
			// SLOTS beside what is asked now only where it costs another order: since Valkey 8.0 it is cached.
			if c != d.command && version != cachedSlots {
				continue
			}
			if c == Slots && d.command == Slots && slices.ContainsFunc(out, func(w WhatIf) bool { return w.Server == version }) {
				continue
			}
			for _, nodes := range q.sizes(size.Nodes) {
				perCall, ok := m.on(version, c, size.grown(nodes))
				if !ok {
					continue
				}
				w := WhatIf{Server: version, Command: c.String(), Nodes: nodes, Clients: d.clients, PeriodNs: d.period.Nanoseconds(), AskAll: d.everyone, PerCallNs: perCall.Nanoseconds()}
				w.PerNode = d.rate(nodes)
				w.Share = w.PerNode * perCall.Seconds()
				out = append(out, w)
			}
		}
	}
	return out
}

// cachedSlots is the measured version that caches the reply of CLUSTER SLOTS.
const cachedSlots = "valkey-8.1.1"

// sizes are the numbers of nodes to reckon with, the present one first.
func (q Question) sizes(now int) []int {
	want := q.Nodes
	if len(want) == 0 {
		want = usualNodes
	}
	out := []int{now}
	for _, n := range want {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
