package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// wholeCase is a recording of a cluster and what a cause must make of all of it.
type wholeCase edgeCase

func explainWhole(t *testing.T, c cause.Cause, cases []wholeCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			tt.rec.Index()
			cs := facts.New(tt.rec.Recording)
			if len(cs.Nodes) != 2 {
				t.Fatal("a cluster of two")
			}
			f := c.Whole(cs, nil)
			if (f != nil) != tt.found {
				t.Fatalf("found %v, want %v: %+v", f != nil, tt.found, f)
			}
			if f == nil {
				return
			}
			if f.Doubts > 0 != tt.doubted {
				t.Errorf("%d doubts: %v", f.Doubts, f.Against)
			}
			holds(t, "evidence", texts(f.Evidence), tt.evidence)
			holds(t, "against", texts(f.Against), tt.against)
			holds(t, "fix", strings.Join(f.FixLines(), "\n"), tt.fix)
		})
	}
}

const otherNode = "10.0.0.6:6379"

// twoNodes is a cluster of edgeNode and otherNode.
func twoNodes(server string, one, other map[string]float64) edge {
	e := newEdge(server)
	e.SetMeta(recording.MetaNodes, fmt.Sprintf("[%q,%q]", edgeNode, otherNode))
	e.kept(1e5, 0, 0)
	if !strings.Contains(server, " 6.0") {
		e.info(map[string]float64{"total_error_replies": 0}) // since 6.2
	}
	for name, total := range other {
		for s := range int64(11) {
			e.Sample(recording.Sample{
				TimeNs: s * 1e9, Source: recording.SourceServer, Subject: otherNode, Name: name,
				Value: total * float64(s) / 10,
			})
		}
	}
	return e.info(one)
}

// open is a slot that migrates from edgeNode to otherNode.
func (e edge) open() edge {
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	return e.snapshot(recording.SourceServer, "cluster-nodes",
		fmt.Sprintf("%s %s@16379 myself,master - 0 0 1 connected 0-8191 [7->-%s]\n%s %s@16379 master - 0 0 2 "+
			"connected 8192-16383\n", a, edgeNode, b, b, otherNode))
}

// step is a counter that rises at once.
func (e edge) step(name string, by float64) edge {
	for s := range int64(11) {
		v := 0.0
		if s >= 4 {
			v = by
		}
		e.Sample(recording.Sample{
			TimeNs: s * 1e9, Source: recording.SourceServer, Subject: edgeNode, Name: name,
			Value: v,
		})
	}
	return e
}

func TestAskRedirect(t *testing.T) {
	const now, old = "redis 7.0.15", "redis 6.0.16"
	gets := map[string]float64{"cmdstat_get.calls": 2500, "cmdstat_asking.calls": 2500}
	explainWhole(t, find("ask-redirect-during-migration"), []wholeCase{
		{
			name: "ASK", rec: twoNodes(now, map[string]float64{"errorstat_ASK.count": 2500, "cmdstat_get.calls": 2500},
				gets).open(), found: true,
			evidence: "slot 7 from 10.0.0.5:6379 to 10.0.0.6:6379", fix: "--cluster fix",
		},
		{
			name: "TRYAGAIN", rec: twoNodes(now, map[string]float64{
				"errorstat_TRYAGAIN.count": 200,
				"cmdstat_get.calls":        2500,
			}, nil).open(), found: true, evidence: "200 commands with several keys",
			fix: "retryDelayOnTryAgain",
		},
		{name: "a version that does not count errors", rec: twoNodes(old, map[string]float64{"cmdstat_get.calls": 2500},
			gets).open(), found: true, evidence: "2 500 calls came with ASKING", against: "does not count"},
		{
			name: "no open slot was seen", rec: twoNodes(now, map[string]float64{"errorstat_ASK.count": 2500}, gets),
			found: true, against: "no open slot",
		},
		{name: "a slot is open, and no call is for its keys", rec: twoNodes(now,
			map[string]float64{"cmdstat_get.calls": 2500}, map[string]float64{"cmdstat_get.calls": 2500}).open()},
		{name: "a key or two in passing", rec: twoNodes(now, map[string]float64{
			"errorstat_ASK.count": 11,
			"cmdstat_get.calls":   25_000,
		}, nil).open()},
		{name: "MOVED", rec: twoNodes(now, map[string]float64{"errorstat_MOVED.count": 2500, "cmdstat_get.calls": 2500},
			nil)},
		{name: "no commandstats", rec: twoNodes(now, nil, nil).open()},
	})
}

func TestMovedRefreshStorm(t *testing.T) {
	const now = "redis 7.0.15"
	slots := func(moved, calls, usec float64) map[string]float64 {
		return map[string]float64{
			"errorstat_MOVED.count": moved, "cmdstat_get.calls": 4000,
			"cmdstat_cluster|slots.calls": calls, "cmdstat_cluster|slots.usec": calls * usec,
		}
	}
	changing := map[string]float64{"cmdstat_cluster|setslot.calls": 500, "cmdstat_get.calls": 4000}
	explainWhole(t, find("moved-refresh-storm"), []wholeCase{
		{
			name: "each MOVED makes a client ask", rec: twoNodes(now, slots(800, 700, 30), changing), found: true,
			evidence: "0.875 for each MOVED", fix: "CLUSTER MIGRATION IMPORT",
		},
		{
			name: "and the map is expensive", rec: twoNodes(now, slots(800, 700, 2400), changing), found: true,
			evidence: "16.8 % of its main thread's time",
		},
		{
			name: "go-redis says its name", rec: twoNodes(now, slots(800, 160, 30),
				changing).clientsOf(caller.Client{Addr: "10.0.0.9:1", LibName: "go-redis"}), found: true,
			fix: "One ClusterClient per process",
		},
		{
			name: "no change of the map was seen", rec: twoNodes(now, slots(800, 700, 30),
				map[string]float64{"cmdstat_get.calls": 4000}), found: true,
			against: "stale for another reason",
		},
		{name: "periodic, with a MOVED now and then", rec: twoNodes(now, slots(90, 1000, 2400), changing)},
		{name: "MOVED, and no client requests the map", rec: twoNodes(now, slots(800, 0, 0), changing)},
		{name: "a slot that stays open", rec: twoNodes(now, slots(800, 700, 30),
			map[string]float64{"cmdstat_get.calls": 4000, "errorstat_TRYAGAIN.count": 100}).open()},
		{name: "MOVED, and few map requests", rec: twoNodes(now, slots(800, 5, 30), changing)},
		{name: "a few", rec: twoNodes(now, slots(20, 15, 30), changing)},
		{name: "ASK", rec: twoNodes(now, map[string]float64{
			"errorstat_ASK.count": 2500, "cmdstat_get.calls": 2500,
			"cmdstat_cluster|slots.calls": 100,
		}, changing)},
		{name: "once, after a failover", rec: twoNodes(now, nil,
			changing).info(map[string]float64{
			"cmdstat_get.calls":           4000,
			"cmdstat_cluster|slots.calls": 100,
		}).step("errorstat_MOVED.count", 800)},
		{
			name: "long after a failover", rec: twoNodes(now, slots(800, 700, 30),
				nil).info(map[string]float64{"cluster_current_epoch": 1}).event(recording.SourceServer,
				recording.KindRoleChange, second, 0, struct{}{}), found: true, doubted: true,
			against: "1 node changed role",
		},
		{name: "a version that does not count errors", rec: twoNodes("redis 6.0.16",
			map[string]float64{"cmdstat_get.calls": 4000, "cmdstat_cluster.calls": 700}, nil)},
		{
			name: "where slots are seen to move", rec: twoNodes("redis 6.0.16",
				map[string]float64{
					"cmdstat_get.calls": 4000, "cmdstat_cluster.calls": 700,
					"cmdstat_cluster.usec": 7e5,
				},
				nil).all("CLUSTER SETSLOT", 500, 1e5), found: true,
			evidence: "500 changes", against: "does not count MOVED",
		},
	})
}

// TestMovedUnnoticed: where one call in twenty takes twice as long and the servers work little, nobody notices.
func TestMovedUnnoticed(t *testing.T) {
	for moved, unnoticed := range map[float64]bool{400: true, 4000: false} {
		e := twoNodes("redis 7.0.15", map[string]float64{
			"errorstat_MOVED.count": moved, "cmdstat_get.calls": 4000, "cmdstat_cluster|slots.calls": moved,
			"cmdstat_cluster|slots.usec": 30 * moved,
		}, map[string]float64{"cmdstat_cluster|setslot.calls": 500, "cmdstat_get.calls": 4000})
		e.Index()
		c := facts.New(e.Recording)
		f := find("moved-refresh-storm").Whole(c, nil)
		if f == nil || c.LossNoticed(f.Claims[0].Losses[0]) == unnoticed {
			t.Errorf("%v MOVED: %+v", moved, f)
		}
	}
}

func TestMigrateBigKeyBlocks(t *testing.T) {
	checkLoop(t, "migrate-big-key-blocks", []loopWant{
		{"T0 MIGRATE in SLOWLOG", newLoopCase().logged("MIGRATE", 8, 30), true, false},
		{"T0 RESTORE-ASKING in SLOWLOG", newLoopCase().logged("RESTORE-ASKING", 5, 30), true, false},
		{"T1 MIGRATE", newLoopCase().busy().logged("MIGRATE", 8, 30), true, false},
		{"T2 MIGRATE", newLoopCase().worked(recording.ActivityDetail{Op: "MIGRATE", Args: 8}), true, false},
		{"T2 MIGRATE that waits for the other server", newLoopCase().worked(recording.ActivityDetail{
			Op: "MIGRATE", Args: 8,
			OnCPUNs: loopStall / 3,
		}), true, false},
		{"RESTORE of an unknown sender", newLoopCase().busy().logged("RESTORE", 4, 30), true, false},
		{"another slow command", newLoopCase().busy().logged("SORT", 4, 30), false, false},
		{"absent", newLoopCase().busy(), false, false},
	})
}

// forTheMap are connections that a process opened to request the map, and closed.
func (e edge) forTheMap(count int) edge {
	tapUsed(e.Recording)
	for i := range count {
		d := recording.ConnDetail{
			Client: address(7000 + i), PID: app, Comm: "node", Side: recording.Client,
			DialNs: dialNs,
		}
		at := second + int64(i)*10*edgeMs
		e.event(recording.SourceTap, recording.KindOpen, at, 0, d)
		d.AgeNs, d.Calls, d.By = 3*edgeMs, 4, recording.Client
		e.event(recording.SourceTap, recording.KindClose, at+3*edgeMs, 0, d)
	}
	return e
}

func TestInlineRediscovery(t *testing.T) {
	const now, old = "redis 8.0.2", "redis 7.0.15"
	installed := func(name string) recording.Library {
		return recording.Library{Name: name, Version: "5.0.0", How: recording.LibraryInstalled}
	}
	slots := func(moved, calls, usec float64) map[string]float64 {
		return map[string]float64{
			"errorstat_MOVED.count": moved, "cmdstat_get.calls": 1000,
			"cmdstat_cluster|slots.calls": calls, "cmdstat_cluster|slots.usec": calls * usec,
		}
	}
	node, py := caller.Client{Addr: "10.0.0.9:1", LibName: "node-redis", LibVer: "5.8.0"}, caller.Client{
		Addr:    "10.0.0.9:1",
		LibName: "redis-py", LibVer: "8.1.0",
	}
	explainWhole(t, find("inline-rediscovery"), []wholeCase{
		{
			name: "T0 node-redis", rec: twoNodes(now, slots(100, 100, 30), nil).clientsOf(node), found: true,
			evidence: "where the call waits for the map", against: "was not seen",
			fix: "maxCommandRedirections",
		},
		{
			name: "T2 node-redis", rec: twoNodes(now, slots(100, 90, 30), nil).clientsOf(node).forTheMap(90),
			found: true, evidence: "90 connections opened for the map alone, closed after 3.05 ms",
		},
		{
			name: "T0 redis-py, at each fifth", rec: twoNodes(now, slots(100, 20, 30), nil).clientsOf(py), found: true,
			evidence: "once for each 5", fix: "reinitialize_steps to 0",
		},
		{
			name: "T2 node-redis without its name", rec: twoNodes(now, slots(100, 90, 30), nil).forTheMap(90),
			found: true, evidence: "as node-redis does", against: "does not report its name",
		},
		{name: "ioredis, by the names of its connections", rec: twoNodes(now, slots(100, 90, 30),
			nil).forTheMap(90).clientsOf(caller.Client{Addr: "10.0.0.9:1", Name: "ioredis-cluster(refresher)"})},
		{name: "ioredis, by the process that asks", rec: twoNodes(old, slots(100, 90, 30),
			nil).forTheMap(90).process(installed("ioredis"))},
		{name: "ioredis, by its connection names, most of them missed at the client", rec: twoNodes(old,
			slots(100, 90, 30),
			nil).forTheMap(90).info(map[string]float64{"cmdstat_client|setname.calls": 94}).all("CLIENT SETNAME", 35,
			1e5)},
		{name: "ioredis, by its connection names at the server", rec: twoNodes(old, slots(100, 90, 30),
			nil).forTheMap(90).allAt(recording.Server, "CLIENT SETNAME", 94, 1e5)},
		{name: "names that are on all connections prove nothing", rec: twoNodes(old, slots(100, 90, 30),
			nil).forTheMap(90).all("CLIENT SETNAME", 90, 1e5).clientsOf(caller.Client{
			Addr: "10.0.0.9:1",
			Name: "shop",
		})},
		{
			name: "node-redis, by the process that asks, with names", rec: twoNodes(old, slots(100, 90, 30),
				nil).forTheMap(90).all("CLIENT SETNAME", 90, 1e5).process(installed("node-redis")), found: true,
			evidence: "the processes that ask for the map: the library is node-redis",
		},
		{name: "the process that asks, and another that reports its name", rec: twoNodes(now, slots(100, 90, 30),
			nil).forTheMap(90).process(installed("node-redis")).clientsOf(caller.Client{
			Addr:    "10.0.0.9:1",
			LibName: "go-redis",
		}), found: true, evidence: "the library is node-redis"},
		{name: "another way round", rec: twoNodes(now, slots(100, 90, 30),
			nil).forTheMap(90).process(installed("ioredis")).clientsOf(py)},
		{
			name: "a process with both, known by its connections", rec: twoNodes(now, slots(100, 90, 30),
				nil).forTheMap(90).process(installed("ioredis"), installed("node-redis")).used(app, "node", 6000, 100,
				0.1).
				clientsOf(caller.Client{Addr: address(6000), LibName: "node-redis"}, py), found: true,
			evidence: "the library is node-redis",
		},
		{name: "most are of a library that waits", rec: twoNodes(now, slots(100, 100, 30), nil).clientsOf(node, py,
			caller.Client{Addr: "10.0.0.8:1", LibName: "go-redis"}), found: true, against: "also go-redis, which " +
			"fetches the map in the background"},
		{name: "most are of one that does not", rec: twoNodes(now, slots(100, 100, 30), nil).clientsOf(node,
			caller.Client{Addr: "10.0.0.8:1", LibName: "go-redis"}, caller.Client{
				Addr:    "10.0.0.8:2",
				LibName: "lettuce",
			})},
		{
			name: "T1: Jedis, by its process alone", rec: twoNodes(old, slots(100, 100, 30),
				nil).process(recording.Library{Name: "jedis", Version: "5.2.0", How: recording.LibraryOpen}),
			found: true,
			fix:   "topologyRefreshPeriod",
		},
		{name: "a library that does not wait", rec: twoNodes(now, slots(100, 100, 30),
			nil).clientsOf(caller.Client{Addr: "10.0.0.9:1", LibName: "ioredis"})},
		{name: "no library reports its name", rec: twoNodes(now, slots(100, 100, 30), nil)},
		{name: "the map is requested periodically", rec: twoNodes(now, slots(100, 900, 30), nil).clientsOf(node)},
		{name: "MOVED, and few map requests", rec: twoNodes(now, slots(1000, 2, 30), nil).clientsOf(py)},
		{name: "nothing moves", rec: twoNodes(now, slots(0, 100, 30), nil).clientsOf(node)},
	})
	explainWhole(t, find("moved-refresh-storm"), []wholeCase{
		{name: "calls wait for the map, and the servers are hardly loaded", rec: twoNodes(now, slots(100, 100, 30),
			nil).clientsOf(node)},
		{
			name: "calls wait for the map, and it is rarely requested", rec: twoNodes(now, slots(290, 21, 30),
				nil).clientsOf(py),
			found: true, doubted: true, against: "that costs time as well",
		},
		{name: "ioredis requests it as rarely, and no call waits", rec: twoNodes(now, slots(290, 21, 30),
			nil).clientsOf(caller.Client{Addr: "10.0.0.9:1", LibName: "ioredis"}), found: true},
		{
			name: "nor do they have time left", rec: twoNodes(now, slots(900, 800, 2400), nil).clientsOf(node),
			found: true, against: "that costs time as well",
		},
		{name: "ioredis, by the process that asks", rec: twoNodes(old, slots(100, 90, 30),
			nil).forTheMap(90).process(installed("ioredis")), found: true, evidence: "the library is ioredis, which " +
			"fetches the map in the background"},
		{
			name: "ioredis, by its connection names", rec: twoNodes(old, slots(100, 90, 30),
				nil).forTheMap(90).all("CLIENT SETNAME", 35,
				1e5).info(map[string]float64{"cmdstat_client|setname.calls": 94}), found: true,
			evidence: "as ioredis does, in the background",
		},
		{
			name: "names on all connections", rec: twoNodes(old, slots(100, 90, 30),
				nil).forTheMap(90).all("CLIENT SETNAME", 90, 1e5).clientsOf(caller.Client{
				Addr: "10.0.0.9:1",
				Name: "shop",
			}),
			found: true, against: "the library is not known",
		},
		{name: "node-redis, by the process that asks", rec: twoNodes(old, slots(100, 90, 30),
			nil).forTheMap(90).process(installed("node-redis"))},
		{name: "Lettuce reports its name", rec: twoNodes(now, slots(100, 90, 30), nil).clientsOf(caller.Client{
			Addr:    "10.0.0.9:1",
			LibName: "lettuce",
		}), found: true, evidence: "the library is lettuce"},
	})
}

func TestRestoreIsSentBy(t *testing.T) {
	c := facts.New(twoNodes("redis 7.0.15", nil, map[string]float64{"cmdstat_migrate.calls": 3}).Recording)
	c.Rec.Index()
	alone := facts.New(newEdge("redis 7.0.15").Recording)
	for _, tt := range []struct {
		node             *facts.Node
		command, process string
		want             bool
	}{
		{alone.Nodes[0], "MIGRATE", "redis-cli[1]", true},
		{alone.Nodes[0], "RESTORE-ASKING", "", true},
		{alone.Nodes[0], "RESTORE", "redis-server[5]", true},
		{alone.Nodes[0], "RESTORE", "valkey-server[5]", true},
		{alone.Nodes[0], "RESTORE", "riot[5]", false},
		{alone.Nodes[0], "RESTORE", "", false},
		{
			c.Nodes[0], "RESTORE",
			"", true,
		},
		{c.Nodes[1], "RESTORE", "", false},
	} {
		if got := cause.SentByServer(tt.node, account.Suspect{
			Kind: account.KindCommand, Command: tt.command,
			Process: tt.process,
		}); got != tt.want {
			t.Errorf("%s by %q: %v", tt.command, tt.process, got)
		}
	}
}
