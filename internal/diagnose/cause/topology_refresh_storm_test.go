package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// mapped is a node of a cluster with so many masters in CLUSTER NODES.
func (e edge) mapped(masters int) edge {
	var b strings.Builder
	for i := range masters {
		from, to := i*16384/masters, (i+1)*16384/masters-1
		fmt.Fprintf(&b, "%040x 10.0.%d.%d:6379@16379 master - 0 0 %d connected %d-%d\n", i+1, i/200, i%200+1, i+1, from,
			to)
	}
	return e.snapshot(recording.SourceServer, "cluster-nodes", b.String())
}

// refreshed is an old server that is asked for the map, with so much CPU time of its main thread in ten seconds.
func refreshed(server, stat string, calls, usecEach float64) edge {
	e := newEdge(server).mapped(80)
	if !strings.Contains(server, " 6.0") {
		e.info(map[string]float64{"total_error_replies": 0}) // since 6.2
	}
	e = e.kept(1e5, 0, 0).mainThread(calls*usecEach/1e7+0.05, 0)
	return e.info(map[string]float64{
		stat + ".calls": calls, stat + ".usec": calls * usecEach,
		"cmdstat_get.calls": 5000, "cmdstat_get.usec": 5000, "total_commands_processed": calls + 5000,
	})
}

func TestTopologyRefreshStorm(t *testing.T) {
	lettuce := map[string]float64{"cmdstat_info.calls": 1000, "total_connections_received": 1000}
	const old, now = "redis 6.0.16", "redis 7.0.15"
	explainEdge(t, find("topology-refresh-storm"), []edgeCase{
		{
			name: "T0: Lettuce on an old server", rec: refreshed(old, "cmdstat_cluster", 1000, 668).info(lettuce),
			found: true, evidence: "as Lettuce refreshes", fix: "dynamicRefreshSources(false)",
		},
		{
			name: "T0: what the upgrade saves", rec: refreshed(old, "cmdstat_cluster", 1000, 668).info(lettuce),
			found: true, evidence: "6.7 % of the main thread's time: 100.0 calls per second of 668 µs",
			fix: "Upgrade the servers (Redis ≥ 7.0, Valkey): saves 9",
		},
		{
			name: "T0: on kept connections", rec: refreshed(old, "cmdstat_cluster", 1000, 668), found: true,
			against: "is a guess",
		},
		{
			name: "T0: SLOTS of a newer server", rec: refreshed(now, "cmdstat_cluster|slots", 1000, 2400),
			found: true, evidence: "CLUSTER SLOTS takes 24.0 %", fix: "Valkey",
		},
		{
			name: "T0: go-redis reports its name", rec: refreshed(now, "cmdstat_cluster|slots", 1000,
				2400).clientsOf(caller.Client{
				Addr: "10.0.0.9:1", Cmd: "cluster|slots", LibName: "go-redis",
				LibVer: "9.17.0",
			}),
			found:    true,
			evidence: "10.0.0.9 (go-redis 9.17.0)", fix: "ClusterStateReloadInterval",
		},
		{name: "T2: the process that asks", rec: refreshed(old, "cmdstat_cluster", 1000, 668).asked("CLUSTER NODES",
			"lettuce-nioEven[77]"), found: true, evidence: "lettuce-nioEven[77]"},
		{
			name: "on a new connection each, without INFO", rec: refreshed(now, "cmdstat_cluster|slots", 1000,
				700).info(map[string]float64{"total_connections_received": 1000}), found: true,
			against: "made for each job",
		},
		{name: "because slots move", rec: refreshed(now, "cmdstat_cluster|slots", 1000,
			700).info(map[string]float64{"errorstat_MOVED.count": 1500})},
		{
			name: "and a few MOVED", rec: refreshed(now, "cmdstat_cluster|slots", 1000,
				700).info(map[string]float64{"errorstat_MOVED.count": 20}), found: true,
			against: "20 calls got MOVED",
		},
		{
			name: "an old server with a changing map", rec: refreshed(old, "cmdstat_cluster", 1000,
				668).info(map[string]float64{"cluster_current_epoch": 5}), found: true, doubted: true,
			against: "the map changed",
		},
		{name: "an old server on which slots are moved", rec: refreshed(old, "cmdstat_cluster", 1000,
			668).all("CLUSTER SETSLOT", 500, 1e5)},
		{name: "cheap: a newer server", rec: refreshed(now, "cmdstat_cluster|nodes", 1000, 14)},
		{name: "rare", rec: refreshed(old, "cmdstat_cluster", 5, 668)},
		{
			name: "slowpath's own CLUSTER INFO",
			rec: newEdge(old).mapped(80).info(map[string]float64{
				"cmdstat_cluster.calls": 11,
				"cmdstat_cluster.usec":  1000, "self.polls": 10,
			}),
		},
		{name: "a server without commandstats", rec: newEdge(old).mapped(80)},
	})
}

// TestRefreshStormComesFirst: that the thread is full, that connections come and go and that INFO is asked follows from
// it.
func TestRefreshStormComesFirst(t *testing.T) {
	rec := refreshed("redis 6.0.16", "cmdstat_cluster", 14_000,
		668).info(map[string]float64{
		"cmdstat_info.calls": 14_000, "cmdstat_info.usec": 1e6,
		"total_connections_received": 14_000,
	}).
		kept(3e6, 0, 0).level(recording.SourceServer, "connected_clients", 20)
	rec.Index()
	d := verdict.Diagnose(rec.Recording, "test")
	if len(d.Findings) < 2 || d.Findings[0].Cause != "topology-refresh-storm" || d.Findings[0].ExcessShare < 0.4 {
		t.Fatalf("%+v", d.Findings)
	}
	for _, f := range d.Findings[1:] {
		if f.Because == "" {
			t.Errorf("%s because of %q", f.Cause, f.Because)
		}
	}
}

// TestSlowMapIsNoSlowCommand: CLUSTER NODES in SLOWLOG is named for what makes it come again and again.
func TestSlowMapIsNoSlowCommand(t *testing.T) {
	rec := newLoopCase().busy().logged("CLUSTER NODES", 2, 20).counted("cluster|nodes", 1, 60_000)
	rec.Index()
	d := verdict.Diagnose(rec.Recording, "test")
	for _, f := range d.Findings {
		if f.Cause == "slow-command" || f.Cause == "introspection-load" {
			t.Errorf("%+v", f)
		}
	}
}

// asked is a map request that held the main thread, as the tap saw it.
func (e edge) asked(op, process string) edge {
	tapUsed(e.Recording)
	return e.event(recording.SourceTap, recording.KindActivity, second, 2*edgeMs, recording.ActivityDetail{
		Op: op, Calls: 1,
		Client: address(7000), Process: process, OnCPUNs: 2 * edgeMs,
	})
}

// clientsOf are lines of CLIENT LIST.
func (e edge) clientsOf(list ...caller.Client) edge {
	var b strings.Builder
	for _, c := range list {
		b.WriteString(recording.Detail(c) + "\n")
	}
	return e.snapshot(recording.SourceServer, "clients", b.String())
}
