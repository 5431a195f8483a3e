package simulate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/topology/survey"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/target"
)

// BenchmarkReality compares predictions with real clients on a real cluster of three masters and three replicas, in
// which 20 slots move or a master is killed:
//
//	SLOWPATH_REALITY=1 go test -run '^$' -bench Reality -benchtime 1x ./internal/topology/simulate
//
// It prints the table of docs/decisions/0026-refresh-policy-simulator.md. A prediction is the range of 20 seeds.
func BenchmarkReality(b *testing.B) {
	needs.Real(b, needs.RedisServer)
	if os.Getenv("SLOWPATH_REALITY") == "" {
		b.Skip("takes minutes, and builds Java clients: SLOWPATH_REALITY=1")
	}
	for _, c := range realCases {
		b.Run(c.title, func(b *testing.B) {
			for b.Loop() {
				c.compare(b)
			}
		})
	}
}

// BenchmarkRealityCPU compares the CPU that ten clients of Lettuce 6 take which each ask a server with a map of 80
// nodes every second. It prints the share of the main thread as predicted from one measured call, as commandstats
// counts it, and the CPU time of the process, which includes connections, INFO and replies.
func BenchmarkRealityCPU(b *testing.B) {
	needs.Real(b, needs.RedisServer)
	if os.Getenv("SLOWPATH_REALITY") == "" {
		b.Skip("builds a Java client: SLOWPATH_REALITY=1")
	}
	for b.Loop() {
		compareCPU(b)
	}
}

func compareCPU(b *testing.B) {
	const period, clientCount = time.Second, 10
	n := fleettest.StartMap(b, servers.Redis6016, fleet.MapSpec{Masters: 80, RangesPerMaster: 6}, fleet.Spec{})
	at, err := target.Parse(n.Addr)
	if err != nil {
		b.Fatal(err)
	}
	seen, err := survey.Options{Target: at}.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	report := survey.Analyse(seen, survey.Assumptions{})
	c := realCase{name: clients.Lettuce6, processes: 1, clients: clientCount, options: clients.Options{
		TopologyRefresh: period, RefreshSeedsOnly: true,
	}}
	stop := c.startClients(b, &fleet.Cluster{Nodes: []*fleet.Instance{n}, Masters: 1})
	await.Pass(time.Second)
	begin, start := server.ParseInfo(do(b, n, "INFO", "everything")), time.Now()
	await.Pass(realWatched)
	end, took := server.ParseInfo(do(b, n, "INFO", "everything")), time.Since(start).Seconds()
	stop()
	calls0, usec0, _, _ := begin.Command(cost.Nodes.Stat())
	calls1, usec1, _, _ := end.Command(cost.Nodes.Stat())
	cpu := 0.0
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		cpu += end.Numbers[name] - begin.Numbers[name]
	}
	s := Setup{
		Server: report.Target.Server, Size: report.Map.Size, Masters: 80, Clients: clientCount, Calls: 1, InUse: 1,
		Duration: realWatched, Change: Change{Kind: NoChange}, Costs: map[cost.Command]time.Duration{},
	}
	s.Costs[cost.Nodes], _ = report.Model.Of(cost.Nodes, s.Size)
	p, err := ParsePolicy("lettuce-6-periodic,ask=one,period=" + period.String())
	if err != nil {
		b.Fatal(err)
	}
	r, err := Run(b.Context(), s, p)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("commands/s: predicted %.1f, measured %.1f; share: predicted %.3f, commandstats %.3f, process %.3f\n",
		r.Commands.PerSecond, (calls1-calls0)/took, r.CPUMasters*80, (usec1-usec0)/1e6/took, cpu/took)
}

// realCase is a client program, and the policy that stands for it.
type realCase struct {
	title     string
	name      clients.Name
	processes int
	clients   int // in each process
	options   clients.Options
	policy    string
	kill      bool // a master; else slots move
}

var realCases = []realCase{
	{title: "go-redis", name: clients.GoRedis9, processes: 4, clients: 1, policy: "go-redis"},
	{
		title: "go-redis-2s", name: clients.GoRedis9, processes: 4, clients: 1, policy: "go-redis,period=2s",
		options: clients.Options{TopologyRefresh: 2 * time.Second}, kill: true,
	},
	{title: "go-redis-kill", name: clients.GoRedis9, processes: 4, clients: 1, policy: "go-redis", kill: true},
	{title: "jedis", name: clients.Jedis, processes: 3, clients: 1, policy: "jedis"},
	{title: "jedis-kill", name: clients.Jedis, processes: 3, clients: 1, policy: "jedis", kill: true},
	{title: "lettuce-6", name: clients.Lettuce6, processes: 1, clients: 10, policy: "lettuce-6"},
	{
		title: "lettuce-6-periodic-2s", name: clients.Lettuce6, processes: 1, clients: 10,
		policy: "lettuce-6-periodic,period=2s", options: clients.Options{TopologyRefresh: 2 * time.Second},
	},
	{
		title: "lettuce-6-adaptive", name: clients.Lettuce6, processes: 1, clients: 10, policy: "lettuce-6-adaptive",
		options: clients.Options{RefreshAdaptive: true},
	},
	{title: "lettuce-7", name: clients.Lettuce7, processes: 1, clients: 10, policy: "lettuce-7"},
	{
		// Without a timeout all threads wait for a minute for replies of the dead master.
		title: "lettuce-7-kill", name: clients.Lettuce7, processes: 1, clients: 10, policy: "lettuce-7", kill: true,
		options: clients.Options{ReadTimeout: time.Second},
	},
}

const (
	realSlots   = 40 // that keys are in; the first half of them moves
	realMoved   = realSlots / 2
	realEvery   = 200 * time.Millisecond
	realCalls   = 30.0 // per second of each client
	realWatched = 10 * time.Second
	realKilled  = 14 * time.Second // how long after a kill
)

// observed is what servers counted from the change on.
type observed struct {
	moved, commands float64
	lastMoved       time.Duration // since the change; below 0: none
	took            time.Duration
	promoted        time.Duration // after the kill
	lastKnown       time.Duration // until the last client has called the new master, since the promotion; 0: not seen
}

func (c realCase) compare(b *testing.B) {
	cl := fleettest.StartCluster(b, servers.Redis7015, 3, 1, fleet.Spec{Config: []string{"cluster-node-timeout 1500"}})
	stop := c.startClients(b, cl)
	await.Pass(time.Second)
	var o observed
	if c.kill {
		o = c.killMaster(b, cl)
	} else {
		o = c.moveSlots(b, cl)
	}
	stop()
	c.print(b, o)
}

// startClients starts the programs, and returns what ends them.
func (c realCase) startClients(b *testing.B, cl *fleet.Cluster) func() {
	cache, err := clients.OpenCache("")
	if err != nil {
		b.Fatal(err)
	}
	program, err := cache.Get(b.Context(), c.name, os.Stderr)
	if err != nil {
		b.Skip(err)
	}
	o := c.options
	o.Addresses, o.Mode, o.Keys, o.Workers, o.Random = cl.Addrs(), protocol.Cluster, 1000, 2*c.clients, true
	o.Rate, o.Clients = realCalls*float64(c.clients), c.clients
	if c.kill { // keys of all masters
		o.Commands = []clients.Command{{Args: []string{"GET", "k{n}"}}}
	} else {
		for _, tag := range tags() {
			o.Commands = append(o.Commands, clients.Command{Args: []string{"GET", "{" + tag + "}{n}"}})
		}
	}
	var running []*clients.Process
	for i := range c.processes {
		o.Name = fmt.Sprint("client-", i)
		p, err := program.Start(b.TempDir(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.Kill)
		running = append(running, p)
		await.Pass(c.options.TopologyRefresh / time.Duration(c.processes)) // periods do not begin together
	}
	for _, p := range running {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		if err := p.AwaitReady(ctx); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	return func() {
		for _, p := range running {
			if _, err := p.Stop(20 * time.Second); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// tags are hash tags of the slots in use, which are those of the first master.
func tags() []string {
	out := make([]string, realSlots)
	for i, left := 0, realSlots; left > 0; i++ {
		tag := fmt.Sprint(i)
		if s := cluster.Slot([]byte(tag)); s < realSlots && out[s] == "" {
			out[s] = tag
			left--
		}
	}
	return out
}

func do(b *testing.B, n *fleet.Instance, args ...string) string {
	b.Helper()
	reply, err := n.Do(b.Context(), args...)
	if err != nil {
		b.Fatal(args, err)
	}
	return fmt.Sprint(reply)
}

// moveSlots gives slots of the first master to the second, one by one.
func (c realCase) moveSlots(b *testing.B, cl *fleet.Cluster) observed {
	to := do(b, cl.Nodes[1], "CLUSTER", "MYID")
	start := time.Now()
	first, _ := counters(b, cl)
	o := observed{lastMoved: -1}
	last := first.moved
	for next := 0; time.Since(start) < realWatched; await.Pass(50 * time.Millisecond) {
		for ; next < realMoved && time.Since(start) >= time.Duration(next)*realEvery; next++ {
			for _, n := range []int{1, 0} {
				do(b, cl.Nodes[n], "CLUSTER", "SETSLOT", fmt.Sprint(next), "NODE", to)
			}
		}
		now, _ := counters(b, cl)
		if now.moved > last {
			last, o.lastMoved = now.moved, time.Since(start)
		}
	}
	end, _ := counters(b, cl)
	o.took, o.moved, o.commands = time.Since(start), end.moved-first.moved, end.commands-first.commands
	return o
}

// killMaster ends the first master, and waits for its replica.
func (c realCase) killMaster(b *testing.B, cl *fleet.Cluster) observed {
	start := time.Now()
	_, first := counters(b, cl)
	if err := cl.Nodes[0].Kill(b.Context()); err != nil {
		b.Fatal(err)
	}
	o := observed{lastMoved: -1}
	for o.promoted == 0 {
		await.Pass(20 * time.Millisecond)
		if strings.Contains(do(b, cl.Nodes[3], "INFO", "replication"), "role:master") {
			o.promoted = time.Since(start)
		}
		if time.Since(start) > realKilled {
			b.Fatal("no failover")
		}
	}
	for ; time.Since(start) < realKilled; await.Pass(50 * time.Millisecond) {
		if o.lastKnown == 0 && c.callers(do(b, cl.Nodes[3], "CLIENT", "LIST")) >= c.processes*c.clients {
			o.lastKnown = time.Since(start) - o.promoted
		}
	}
	_, end := counters(b, cl)
	o.took = time.Since(start)
	for n, e := range end {
		o.commands += e.commands - first[n].commands
		o.moved += e.moved - first[n].moved
	}
	return o
}

// callers counts the clients in a list that have sent a GET. Lettuce has one connection per client, the others several.
func (c realCase) callers(list string) int {
	names, connections := map[string]bool{}, 0
	for _, x := range server.ParseClients(list) {
		if x.Cmd == "get" {
			names[x.Name] = true
			connections++
		}
	}
	if c.clients > 1 {
		return connections
	}
	return len(names)
}

// counters are MOVED replies and map commands of the nodes that run, together and one by one.
func counters(b *testing.B, cl *fleet.Cluster) (sum observed, by map[int]observed) {
	by = map[int]observed{}
	for i, n := range cl.Nodes {
		if !n.Running() {
			continue
		}
		text := do(b, n, "INFO", "everything")
		f := server.ParseInfo(text)
		var o observed
		for _, c := range cost.Commands {
			calls, _, _, _ := f.Command(c.Stat())
			o.commands += calls
		}
		_, rest, _ := strings.Cut(text, "errorstat_MOVED:count=")
		_, _ = fmt.Sscan(strings.TrimSpace(strings.SplitN(rest, "\r\n", 2)[0]), &o.moved)
		by[i] = o
		sum.moved += o.moved
		sum.commands += o.commands
	}
	return sum, by
}

// print compares with predictions of the same setup.
func (c realCase) print(b *testing.B, o observed) {
	p, err := ParsePolicy(c.policy)
	if err != nil {
		b.Fatal(err)
	}
	s := Setup{
		Server: "redis 7.0.15", Size: SizeOf(3, 1, 1), Masters: 3, Replicas: 1, Spread: SpreadOf("redis 7.0.15"),
		Clients: c.processes * c.clients, Calls: realCalls, InUse: realSlots, RTT: time.Millisecond,
		Duration: time.Second + o.took, Change: Change{
			Kind: Slots, At: time.Second, Slots: realMoved,
			PerSecond: float64(time.Second) / float64(realEvery),
		},
	}
	if c.kill {
		s.Change = Change{Kind: Failover, At: time.Second, Promotion: o.promoted}
	}
	var moved, commands, last []float64
	for seed := range uint64(20) {
		s.Seed = seed
		if s.Costs, err = CostsOf(s.Server, s.Size); err != nil {
			b.Fatal(err)
		}
		r, err := Run(b.Context(), s, p)
		if err != nil {
			b.Fatal(err)
		}
		seconds := o.took.Seconds()
		moved = append(moved, float64(r.Moved.Count)/seconds)
		commands = append(commands, float64(r.Commands.Count)/seconds)
		if c.kill {
			last = append(last, float64(r.Stale.LastNs)/1e9)
		} else {
			last = append(last, float64(r.MovedFor)/1e9)
		}
	}
	seen := fmt.Sprintf("%.1f", o.lastMoved.Seconds())
	if c.kill {
		seen = fmt.Sprintf("%.1f", o.lastKnown.Seconds())
		if o.lastKnown == 0 {
			seen = fmt.Sprintf("> %.1f", (o.took - o.promoted).Seconds())
		}
	}
	seconds := o.took.Seconds()
	fmt.Printf("| %s | %s | %.1f | %s | %.1f | %s | %s |\n", c.title, span(moved), o.moved/seconds, span(commands),
		o.commands/seconds, span(last), seen)
}

// span is the range and the median of predictions.
func span(list []float64) string {
	slices.Sort(list)
	return fmt.Sprintf("%.1f (%.1f to %.1f)", list[len(list)/2], list[0], list[len(list)-1])
}
