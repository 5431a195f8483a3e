package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/diagnose/verdict"
)

// comeAndGo adds connections that are used for so many calls each.
func (e edge) comeAndGo(count int, calls int64) edge {
	for i := range int64(count) {
		at := second + i*edgeMs/2
		e.conn(life{port: 5000 + int(i), from: at, to: at + edgeMs, work: calls, ops: greets, trips: 2, callNs: edgeMs /
			10})
	}
	return e
}

func TestShortLivedConnections(t *testing.T) {
	probed := func() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/5, edgeMs/5) }
	churn := map[string]float64{"total_connections_received": 10_020, "total_commands_processed": 10_300}
	stalled := newEdge("redis 7.0.15").kept(edgeMs/10, 80*edgeMs, 10) // from 450 to 530 ms of each half second
	for i := range int64(19) {
		stalled.freshCall((i+1)*500*edgeMs, 75*edgeMs, edgeMs/5)
		if i%2 == 0 {
			stalled.freshCall((i*500+200)*edgeMs, edgeMs/5, edgeMs/5)
		}
	}
	explainEdge(t, find("short-lived-connections"), []edgeCase{
		{
			name: "T0: connections that come while the event loop stands still, too", rec: stalled.info(churn),
			found: true, evidence: "a new connection costs 200 µs",
		},
		{
			name: "T0: a connection per call", rec: probed().info(churn).level("server", "connected_clients", 5),
			found: true, evidence: "1000 connections per second were opened and closed",
			fix: "pool",
		},
		{
			name: "T1: and TIME_WAIT", rec: probed().info(churn).level("host", "sock.time_wait", 20_000),
			found: true, evidence: "TIME_WAIT",
		},
		{
			name: "T0: a health check every half second",
			rec:  probed().info(map[string]float64{"total_connections_received": 40, "total_commands_processed": 300}),
		},
		{name: "T0: only the probe's own", rec: probed().info(map[string]float64{
			"total_connections_received": 20,
			"total_commands_processed":   300,
		})},
		{name: "T0: a pool that grows", rec: probed().info(map[string]float64{
			"total_connections_received": 1000,
			"connected_clients":          980, "total_commands_processed": 5000,
		})},
		{
			name: "T0: long sessions that come and go",
			rec:  probed().info(map[string]float64{"total_connections_received": 500, "total_commands_processed": 1e6}),
		},
		{
			name: "T0: a few short connections and a busy pool",
			rec: probed().info(map[string]float64{
				"total_connections_received": 3000,
				"total_commands_processed":   120_000,
			}), found: true, evidence: "opened and closed",
		},
		{
			name: "T2: and these had one command each",
			rec: probed().info(map[string]float64{
				"total_connections_received": 3000,
				"total_commands_processed":   120_000,
			}).comeAndGo(3000, 1), found: true,
			evidence: "298 connections per second",
		},
		{
			name: "T2: used for many commands each",
			rec: probed().info(map[string]float64{
				"total_connections_received": 3000,
				"total_commands_processed":   120_000,
			}).comeAndGo(3000, 40),
		},
		{name: "T2: a pool keeps others", rec: near(nil), found: true, against: "has a pool"},
		{name: "no probe", rec: newEdge("redis 5.0.6").info(churn), found: true},
		{name: "nothing known", rec: newEdge("redis 5.0.6")},
		{
			name: "T0: the library is known", rec: probed().info(churn).snapshot("server", "clients",
				`{"id":1,"addr":"10.1.1.1:4000","lib_name":"redis-py","lib_ver":"5.0"}`), found: true,
			fix: "redis-py: Create one redis.Redis",
		},
	})
}

// BenchmarkChurn judges a watch in which each call opens a connection: twice the connections take twice the
// time.
func BenchmarkChurn(b *testing.B) {
	for _, count := range []int{10_000, 20_000} {
		b.Run(fmt.Sprintf("connections=%d", count), func(b *testing.B) {
			e := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/5,
				edgeMs/5).info(map[string]float64{
				"total_connections_received": float64(count),
				"total_commands_processed":   float64(count),
			})
			for i := range int64(count) {
				at := second + i*edgeMs/4
				e.conn(life{port: 1 + int(i%60_000), from: at, to: at + edgeMs, work: 1, callNs: edgeMs / 10})
			}
			e.Index()
			for b.Loop() {
				verdict.Diagnose(e.Recording, "test")
			}
		})
	}
}
