// Package random grades verdicts on scenarios that nobody chose: servers, callers, faults and their strengths are
// drawn. What a fault costs the callers is measured by their own clocks, in trials with and without it; that is the
// truth which the verdict is compared with.
package random

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

// Drawn is what is made in one run. Its seed decides all of it, and the only server that may be drawn, if any.
type Drawn struct {
	Server   servers.Name      `json:"server"`
	Topology scenario.Topology `json:"topology"`
	DelayMs  float64           `json:"delay_ms,omitempty"` // of each reply, by the proxy
	Callers  []Caller          `json:"callers"`            // whose time is measured
	Others   Others            `json:"others"`             // further callers
	Noise    Noise             `json:"noise"`
	Faults   []Fault           `json:"faults"`
}

// Caller is a program whose operations are measured. What a site does is its own; only its rate is drawn.
type Caller struct {
	Program   clients.Name `json:"program"`
	Workers   int          `json:"workers"`
	PerSecond float64      `json:"per_second"` // operations of all workers
	Poisson   bool         `json:"poisson,omitempty"`
	Reads     int          `json:"reads"` // for each write
	Items     int          `json:"items"` // of a value, about 60 bytes each
}

// Others are callers that are not measured.
type Others struct {
	Connections int     `json:"connections"`
	PerSecond   float64 `json:"per_second"`
}

// Noise is what else the host does.
type Noise struct {
	CPUShare        float64 `json:"cpu_share,omitempty"` // of one CPU
	DiskMBPerSecond float64 `json:"disk_mb_per_second,omitempty"`
}

// Fault is a fault with its strength.
type Fault struct {
	Name     string            `json:"name"`
	Cause    string            `json:"cause"`
	Strength scenario.Strength `json:"strength"`
}

// kind is the fault in the lab's catalogue.
func (f Fault) kind() scenario.Fault {
	k, _ := scenario.FindFault(f.Name) // drawn from there
	return k
}

// Draw draws the scenario of a seed, with one version of the server only, or with any if that is empty.
func Draw(seed uint64, only servers.Name) Drawn {
	r := rand.New(rand.NewPCG(seed, 0x736c6f77)) // any constant
	known := servers.Known()
	if only != "" {
		known = []servers.Name{only}
	}
	kinds := drawFaults(r, known)
	way := pick(r, ways(kinds, known))
	s := Drawn{Server: way.server, Topology: way.topology, Callers: []Caller{{Program: way.program}}}
	if s.Topology == scenario.Proxied {
		s.DelayMs = twoDigits(0.2 + 2.8*r.Float64())
	}
	if second := pick(r, clients.Known()); r.IntN(5) < 2 && fits(second, s.Topology, s.Server) {
		s.Callers = append(s.Callers, Caller{Program: second})
	}
	for i := range s.Callers {
		s.Callers[i].draw(r, s.DelayMs)
	}
	if r.IntN(10) < 7 {
		s.Others = Others{Connections: 2 + r.IntN(9), PerSecond: float64(50 + r.IntN(1000))}
	}
	switch p := r.IntN(10); {
	case p < 3:
		s.Noise.CPUShare = twoDigits(0.02 + 0.13*r.Float64())
	case p < 5:
		s.Noise.DiskMBPerSecond = float64(1 + r.IntN(8))
	}
	s.Faults = []Fault{}
	for _, k := range kinds {
		s.Faults = append(s.Faults, Fault{k.Name, k.Cause, k.Draw(r)})
	}
	return s
}

// workers are those of all callers.
func (s Drawn) workers() (n int) {
	for _, c := range s.Callers {
		n += c.Workers
	}
	return n
}

// drawFaults draws none, one or two faults that one drawn scenario can have on some of the servers.
func drawFaults(r *rand.Rand, known []servers.Name) []scenario.Fault {
	n := r.IntN(3)
	if n == 0 {
		return nil
	}
	all := possible(known)
	first := pick(r, all)
	if with := first.Needs.With; with != "" {
		other, _ := scenario.FindFault(with) // a test looks for it
		return []scenario.Fault{other, first}
	}
	if n == 1 {
		return []scenario.Fault{first}
	}
	for range 100 {
		if second := pick(r, all); together(first, second, known) {
			return []scenario.Fault{first, second}
		}
	}
	return []scenario.Fault{first}
}

// possible are the faults that a drawn scenario can have on some of the servers.
func possible(known []servers.Name) []scenario.Fault {
	return slices.DeleteFunc(scenario.Faults(), func(f scenario.Fault) bool {
		return !able([]scenario.Fault{f}, known)
	})
}

// together tells whether a drawn scenario can have both faults, on some of the servers.
func together(a, b scenario.Fault, known []servers.Name) bool {
	return a.Cause != b.Cause && (b.Needs.With == "" || b.Needs.With == a.Name) && (a.Base == nil || b.Base == nil) &&
		!slices.ContainsFunc(a.Needs.Alone, func(w scenario.Alone) bool { return slices.Contains(b.Needs.Alone, w) }) &&
		able([]scenario.Fault{a, b}, known)
}

// way is how the first caller can reach a server.
type way struct {
	server   servers.Name
	topology scenario.Topology
	program  clients.Name
}

// ways are all that the faults allow, to some of the servers.
func ways(kinds []scenario.Fault, known []servers.Name) []way {
	return slices.Collect(eachWay(kinds, known))
}

// able tells whether there is a way.
func able(kinds []scenario.Fault, known []servers.Name) bool {
	for range eachWay(kinds, known) {
		return true
	}
	return false
}

func eachWay(kinds []scenario.Fault, known []servers.Name) iter.Seq[way] {
	topologies := common(scenario.Topologies, kinds, func(n scenario.Needs) []scenario.Topology { return n.Topologies })
	versions := common(known, kinds, func(n scenario.Needs) []servers.Name { return n.Servers })
	callers := common(programs(), kinds, func(n scenario.Needs) []clients.Name { return n.Callers })
	return func(yield func(way) bool) {
		for _, t := range topologies {
			for _, server := range versions {
				for _, program := range callers {
					if fits(program, t, server) && !yield(way{server, t, program}) {
						return
					}
				}
			}
		}
	}
}

// common are the values that all faults allow.
func common[T comparable](all []T, kinds []scenario.Fault, allowed func(scenario.Needs) []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool {
		return slices.ContainsFunc(kinds, func(k scenario.Fault) bool {
			some := allowed(k.Needs)
			return some != nil && !slices.Contains(some, v)
		})
	})
}

// programs are all that can be the first caller.
func programs() []clients.Name {
	return append(append(clients.Known(), scenario.OwnKinds...), sites...)
}

// encrypted are the programs that speak TLS.
var encrypted = []clients.Name{
	clients.GoRedis6, clients.GoRedis8, clients.GoRedis9, clients.Redigo, clients.Rueidis, clients.RedisPy,
}

// fits tells whether a program can call a server in a topology. docs/clients.md has the pairs that cannot.
func fits(program clients.Name, t scenario.Topology, server servers.Name) bool {
	of, err := servers.Lookup(server)
	if err != nil || program == clients.SpringCache { // a framework, whose keys are its own
		return false
	}
	switch {
	case slices.Contains(sites, program): // some need RESP3, and most trust only the CAs of the system
		return server != servers.Redis506 && t != scenario.Encrypted && t != scenario.Clustered
	case t == scenario.Encrypted && (!of.TLS || !slices.Contains(encrypted, program)):
		return false
	case server == servers.Redis506 && (program == clients.RedisPy || program == clients.NodeRedis): // need RESP3
		return false
	case t != scenario.Clustered:
		return true
	case program == clients.GoRedis6 || program == clients.GoRedis8: // not with the CLUSTER SLOTS of Redis 7
		return false
	}
	c, err := clients.Lookup(program)
	return err == nil && c.Has(protocol.Cluster)
}

// busiest is the share of its time that a worker may spend in calls without a fault. Otherwise operations are missed.
const busiest = 0.3

func (c *Caller) draw(r *rand.Rand, delayMs float64) {
	if site, err := apps.Lookup(apps.Name(c.Program)); err == nil {
		c.Workers, c.Poisson = apps.Visitors, true
		c.PerSecond = math.Round(site.Rate * (0.5 + 0.7*r.Float64()))
		return
	}
	c.Workers = 2 + r.IntN(11)
	c.PerSecond = float64(int(100 * expBetween(r, 1, 8)))
	if c.Program == clients.RedisPy || c.Program == clients.PyAsync { // a call takes its interpreter longer
		c.PerSecond = min(c.PerSecond, 200)
	}
	const callMs = 0.7 // of a call on this host, with all of its noise
	c.PerSecond = min(c.PerSecond, float64(int(busiest*float64(c.Workers)*1000/(callMs+delayMs))))
	c.Poisson = r.IntN(2) == 0
	c.Reads = 1 + r.IntN(9)
	c.Items = int(expBetween(r, 1, 60))
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }
