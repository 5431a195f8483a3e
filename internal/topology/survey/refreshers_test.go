package survey

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (r *Report) has(id string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.ID == id })
}

// listed makes a survey of one node whose clients were listed each second.
func listed(lists ...string) *Survey {
	l := &NodeState{Addr: "n:1"}
	for k, text := range lists {
		l.Ticks = append(l.Ticks, Tick{
			At:      start.Add(time.Duration(k) * time.Second),
			Clients: otherClients(server.ParseClients(text)), HasClients: true,
		})
	}
	return &Survey{Start: start, Window: time.Duration(len(lists)-1) * time.Second, Nodes: []*NodeState{l}}
}

func TestRefreshersOfListings(t *testing.T) {
	// A connection that asks each 5 s, one that asked an hour ago, and slowpath's own, over 11 s.
	var kept []string
	for k := range 12 {
		kept = append(kept, fmt.Sprintf("id=1 addr=10.0.0.1:1 name= age=%d idle=%d flags=N cmd=cluster|slots "+
			"lib-name=redisson lib-ver=4.7\n"+
			"id=2 addr=10.0.0.2:1 name= age=%d idle=%d flags=N cmd=cluster|slots lib-name=redis-py lib-ver=6.0\n"+
			"id=3 addr=10.0.0.3:1 name=slowpath-topology age=1 idle=0 flags=N cmd=cluster|nodes\n"+
			"id=4 addr=10.0.0.4:1 name= age=9 idle=0 flags=S cmd=replconf\nid=5 addr=10.0.0.5:1 name=app age=9 "+
			"idle=0 flags=N cmd=get", 900+k, k%5, 3700+k, 3600+k))
	}
	got := refreshers(listed(kept...))
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	r := got[0]
	if r.Library != "redisson 4.7" || r.Command != "cluster|slots" || r.Connections != "kept" || r.Refreshes != 3 ||
		time.Duration(r.PeriodNs) != 5*time.Second || r.HostCount != 1 || r.Nodes != 1 {
		t.Errorf("%+v", r)
	}
	if r := got[1]; r.Library != "redis-py 6.0" || r.Refreshes != 0 || r.PeriodNs != 0 {
		t.Errorf("a client that asked once: %+v", r)
	}
}

func TestRefreshersOnNewConnections(t *testing.T) {
	got := refreshers(listed("", "id=7 addr=10.0.0.1:1 name=lettuce#ClusterTopologyRefresh age=0 idle=0 flags=N "+
		"cmd=info\n", "id=9 addr=10.0.0.2:1 name=lettuce#ClusterTopologyRefresh age=0 idle=0 flags=N "+
		"cmd=cluster|nodes\n"))
	if len(got) != 1 || got[0].Library != "lettuce" || got[0].Connections != "new" || got[0].Count != 2 ||
		got[0].HostCount != 2 || got[0].Command != "cluster|nodes" || got[0].PeriodNs != 0 {
		t.Errorf("%+v", got)
	}
	if h, ok := cost.PolicyOf(got[0].Library); !ok || !h.AskAll {
		t.Errorf("policy %+v, %v", h, ok)
	}
}

// TestPeriodOfMany: of 60 connections that ask once a minute, 10 do within ten seconds.
func TestPeriodOfMany(t *testing.T) {
	var lists []string
	for k := range 11 {
		var b strings.Builder
		for c := range 60 {
			since := (k - c + 60) % 60 // asked at second c of each minute
			fmt.Fprintf(&b, "id=%d addr=10.0.0.%d:1 age=%d idle=%d flags=N cmd=cluster|nodes\n", c+1, c+1, 9000+k,
				since)
		}
		lists = append(lists, b.String())
	}
	got := refreshers(listed(lists...))
	if len(got) != 1 || got[0].Count != 60 {
		t.Fatalf("%+v", got)
	}
	if p := time.Duration(got[0].PeriodNs); p < 40*time.Second || p > 70*time.Second {
		t.Errorf("a period of %v: %+v", p, got[0])
	}
}

func TestLikely(t *testing.T) {
	measured := []cost.Measured{{Command: cost.Nodes, PerCall: 700 * time.Microsecond}, {
		Command: cost.Slots,
		PerCall: 300 * time.Microsecond,
	}}
	for usec, want := range map[float64]string{
		690: "cluster|nodes", 900: "cluster|nodes", 310: "cluster|slots",
		460: "", 5: "", 9000: "",
	} {
		if got := likelyCommand("cluster", usage{10, usec * 10}, measured); got != want {
			t.Errorf("%v µs a call: %q, want %q", usec, got, want)
		}
	}
	if got := likelyCommand("cluster|nodes", usage{1, 1}, measured); got != "" {
		t.Errorf("what needs no guess: %q", got)
	}
}

// counted makes a survey of equal nodes of 6.0 whose clients ask CLUSTER NODES so often.
func counted(nodes int, perSecond, perCall float64) *Survey {
	s := &Survey{Start: start, Window: 10 * time.Second}
	for k := range nodes {
		l := &NodeState{
			Addr: fmt.Sprintf("n%d:1", k), Server: "redis 6.0.16", InfoFields: server.ParseInfo("role:master"),
			Measured: []cost.Measured{{
				Command: cost.Nodes, PerCall: time.Duration(perCall * float64(time.Microsecond)),
				Calls: 5, Alone: true,
			}, {Command: cost.Slots, PerCall: time.Duration(perCall / 3 *
				float64(time.Microsecond)), Calls: 5, Alone: true}},
		}
		calls := perSecond * 10
		l.Begin, l.End = server.ParseInfo("used_cpu_user:0\r\ntotal_connections_received:5"),
			server.ParseInfo(fmt.Sprintf("used_cpu_user:5\r\ntotal_connections_received:%.0f", 5+calls))
		l.Ticks = []Tick{
			{
				At:    start,
				Stats: server.ParseInfo("cmdstat_cluster:calls=9,usec=900\r\ncmdstat_info:calls=1,usec=1"),
			},
			{
				At: start.Add(10 * time.Second),
				Stats: server.ParseInfo(fmt.Sprintf("cmdstat_cluster:calls=%.0f,usec=%.0f\r\n"+
					"cmdstat_info:calls=%.0f,usec=1", 9+calls, 900+calls*perCall, 2+calls)),
			},
		}
		s.Nodes = append(s.Nodes, l)
	}
	return s
}

// TestLettuceStorm: 66 calls of 2.16 ms per second take a seventh of the main thread, and Lettuce is recognized by the
// new connections and INFO calls that come with them.
func TestLettuceStorm(t *testing.T) {
	s := counted(4, 66, 2160)
	r := countRefreshes(s)
	if !r.Counted || len(r.Commands) != 1 || r.Commands[0].Likely != "cluster|nodes" || !near(r.Share, 66*2160e-6) ||
		!near(r.ShareMax, r.Share) || !near(r.BusyMax, 0.5) || !r.Fresh || !r.LettuceLike {
		t.Fatalf("%+v", r)
	}
	sum := MapSummary{Size: cost.Size{Nodes: 80, Masters: 40, Ranges: 240, Entries: 480}, Replicas: 40}
	m, ok := cost.ModelOf("redis 6.0.16", s.Nodes[0].Measured[0], sum.Size)
	if !ok {
		t.Fatal("no model")
	}
	load := Assumptions{}.refreshLoad(&r, nil, nil, 80)
	if !load.AskAll || !load.Counted || load.Period != time.Minute || load.Clients != 66*60 ||
		load.Command != cost.Nodes {
		t.Errorf("load %+v", load)
	}
	options := map[string]cost.Option{}
	for _, w := range savingOptions(load, &r, m, sum, nil, nil) {
		options[w.ID] = w
	}
	if w := options["now"]; !near(w.Masters, r.Share) || w.Replicas == nil {
		t.Errorf("now: %+v", w)
	}
	// In the real case the upgrade made the call 20 times cheaper.
	if w := options["upgrade"]; !w.Possible || w.Saves < 0.85 || !near(w.Masters, r.Share*(1-w.Saves)) {
		t.Errorf("upgrade: %+v", w)
	}
	if w := options["replicas-only"]; !w.Possible || w.Masters != 0 || !near(*w.Replicas, *options["now"].Replicas) ||
		!strings.Contains(w.How, "getTopologyRefreshSource") {
		t.Errorf("replicas only: %+v", w)
	}
	if w := options["longer-period"]; !near(w.Masters, r.Share/5) {
		t.Errorf("longer: %+v", w)
	}
	if w := options["event-driven"]; w.Saves != 1 || !strings.Contains(w.Note, "8.55 s") {
		t.Errorf("event driven: %+v", w)
	}
	sum.Replicas = 0
	for _, w := range savingOptions(load, &r, m, sum, nil, nil) {
		if w.ID == "replicas-only" && w.Possible || w.Replicas != nil {
			t.Errorf("without replicas: %+v", w)
		}
	}
}

// TestNoRefreshes: the load is estimated from the assumptions alone, and marked as such.
func TestNoRefreshes(t *testing.T) {
	s := counted(1, 0, 700)
	r := countRefreshes(s)
	load := Assumptions{Clients: 4000, Period: 30 * time.Second}.refreshLoad(&r, nil, nil, 80)
	if load.Counted || load.Clients != 4000 || !near(load.PerNode, 4000.0/30) {
		t.Errorf("%+v", load)
	}
	if one := (Assumptions{}).refreshLoad(&r, nil, []Library{{Library: "go-redis"}}, 80); one.AskAll ||
		!near(one.PerNode,
			1000.0/60/80) {
		t.Errorf("each asks one node: %+v", one)
	}
	if w := savingOptions(load, &r, nil, MapSummary{}, nil, nil); len(w) != 0 {
		t.Errorf("without a model: %+v", w)
	}
}

// TestReset: counters that fell give no rate.
func TestReset(t *testing.T) {
	s := counted(1, 66, 2160)
	s.Nodes[0].Ticks[1].Stats = server.ParseInfo("cmdstat_cluster:calls=1,usec=1")
	if r := countRefreshes(s); r.Counted || len(r.Commands) != 0 {
		t.Errorf("%+v", r)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(b) }

// fineList makes a survey of two nodes whose clients were listed each 100 ms for ten seconds, as they are where there
// are few. A connection has its last command at the times that it is given: refreshes and, after each, other commands.
func fineList(conns ...fakeConn) *Survey {
	s := &Survey{Start: start, Window: 10 * time.Second}
	for node := range 2 {
		l := &NodeState{Addr: fmt.Sprintf("n%d:1", node)}
		for at := time.Duration(0); at <= s.Window; at += 100 * time.Millisecond {
			var b strings.Builder
			for id, c := range conns {
				if c.node != node {
					continue
				}
				cmd, last := "get", time.Duration(-900)*time.Second
				for k := 0; ; k++ {
					t := c.phase + time.Duration(k)*c.period
					if t > at {
						break
					}
					cmd, last = "cluster|slots", t
					if c.calls && at-t >= 150*time.Millisecond {
						cmd, last = "get", at
					}
				}
				// A server has whole seconds of its clock.
				now := int64((at + 700*time.Millisecond).Seconds())
				fmt.Fprintf(&b, "id=%d addr=10.0.0.1:%d name=%s age=%d idle=%d flags=N cmd=%s\n", id+1, 5000+id,
					c.name, 900+now, now-int64((last+700*time.Millisecond).Seconds()), cmd)
			}
			l.Ticks = append(l.Ticks, Tick{
				At: start.Add(at), Clients: otherClients(server.ParseClients(b.String())), HasClients: true,
			})
		}
		s.Nodes = append(s.Nodes, l)
	}
	return s
}

// fakeConn is a connection that refreshes, and with calls does other things, too.
type fakeConn struct {
	name          string
	node          int
	phase, period time.Duration
	calls         bool
}

// TestPeriodOfEachCaller: callers of one host with other periods have a row each. They had one, with 6 s for a client
// of one second and one of two.
func TestPeriodOfEachCaller(t *testing.T) {
	for name, conns := range map[string][]fakeConn{
		"connections that do nothing else": {
			{period: time.Second, phase: 430 * time.Millisecond},
			{period: 2 * time.Second, phase: 770 * time.Millisecond},
		},
		"clients with connections for all": {
			{name: "one", period: 2 * time.Second, phase: 400 * time.Millisecond, calls: true},
			{name: "one", period: 2 * time.Second, phase: 1400 * time.Millisecond, calls: true, node: 1},
			{name: "two", period: 4 * time.Second, phase: 700 * time.Millisecond, calls: true},
			{name: "two", period: 4 * time.Second, phase: 2700 * time.Millisecond, calls: true, node: 1},
		},
	} {
		got := refreshers(fineList(conns...))
		r := Refreshes{Commands: []Refreshing{{Command: "cluster|slots", PerSecond: 1.5}}}
		setPeriodsByCounters(got, &r, 10*time.Second)
		if len(got) != 2 || got[0].PeriodNs != 1e9 || got[1].PeriodNs != 2e9 || got[0].Callers != 1 ||
			got[1].Callers != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPeriodAtEachPhase: the period of a connection that asks each second is known wherever in the second of the
// server's clock that is, and whatever lies between that and the lists.
func TestPeriodAtEachPhase(t *testing.T) {
	for phase := 10 * time.Millisecond; phase < time.Second; phase += 20 * time.Millisecond {
		got := refreshers(fineList(fakeConn{period: time.Second, phase: phase}))
		if len(got) != 1 || got[0].PeriodNs != 1e9 {
			t.Errorf("asked %v after the first list: %+v", phase, got)
		}
	}
}

// TestConnectionsOfPools: a pooled connection on which a refresh came first, or last, is none that is opened for a
// refresh, and no caller of its own.
func TestConnectionsOfPools(t *testing.T) {
	var lists []string
	for k := range 10 {
		cmds := []string{"get", "get"}
		if k == 2 {
			cmds[0] = "cluster|slots"
		}
		if k == 9 {
			cmds[1] = "cluster|slots"
		}
		lists = append(lists, fmt.Sprintf("id=1 addr=10.0.0.1:1 name=app age=%d idle=0 flags=N cmd=%s\n"+
			"id=2 addr=10.0.0.1:2 name=app age=%d idle=0 flags=N cmd=%s", max(0, k-2), cmds[0], 50+k, cmds[1]))
	}
	got := refreshers(listed(lists...))
	if len(got) != 1 || got[0].Callers != 1 || got[0].Count != 2 || got[0].Connections != connKept ||
		time.Duration(got[0].PeriodNs) != 7*time.Second {
		t.Errorf("%+v", got)
	}
}

// TestMissedRefreshes: lists show few of the refreshes of connections that are used for calls. The time between those
// seen is no period.
func TestMissedRefreshes(t *testing.T) {
	for _, test := range []struct {
		seen int
		want time.Duration
	}{{4, 0}, {20, 500 * time.Millisecond}} {
		rows := []Refresher{
			{
				Command: "cluster|slots", Connections: connKept, Callers: 1, Count: 3, Refreshes: test.seen,
				PeriodNs: 7e9,
			},
		}
		r := Refreshes{Commands: []Refreshing{{Command: "cluster|slots", PerSecond: 20}}}
		if test.seen == 20 {
			r.Commands[0].PerSecond = 2 * 2 // seen are half of them
			rows = append(rows, rows[0])
		}
		setPeriodsByCounters(rows, &r, 20*time.Second)
		if got := time.Duration(rows[0].PeriodNs); got != test.want {
			t.Errorf("%d seen: %v, want %v", test.seen, got, test.want)
		}
	}
}
