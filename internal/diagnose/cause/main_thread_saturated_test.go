package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestMainThreadSaturated(t *testing.T) {
	busy := map[string]float64{
		"total_commands_processed": 1e6, "total_reads_processed": 1e6, "cmdstat_get.calls": 1e6,
		"cmdstat_get.usec": 3e6,
	}
	waiting := func(server string) edge { return newEdge(server).kept(2*edgeMs, 0, 0).fresh(edgeMs/10, 3*edgeMs) }
	queuedCalls := func(clients float64) edge { // 100 000 calls per second of 2 ms: 200 at a time
		return waiting("redis 7.0.15").info(busy).mainThread(0.97, 0.01).call("kept", 1,
			edgeMs/10).level(recording.SourceServer, "connected_clients", clients)
	}
	quicker := func(clients float64) edge { // of 1 ms: 100
		return newEdge("redis 7.0.15").kept(edgeMs, 0, 0).fresh(edgeMs/10, 3*edgeMs).info(busy).mainThread(0.97,
			0.01).call("kept", 1, edgeMs/10).level(recording.SourceServer, "connected_clients", clients)
	}
	explainEdge(t, find("main-thread-saturated"), []edgeCase{
		{
			name: "T1: it never sleeps, and calls wait in the queue",
			rec: waiting("redis 7.0.15").info(busy).mainThread(0.97,
				0.01).call("kept", 1, edgeMs/10), found: true,
			evidence: "slept 2 %", fix: "Use pipelines: each read brings 1.0 commands now",
		},
		{name: "T1: on a crowded machine", rec: waiting("redis 7.0.15").info(busy).mainThread(0.7, 0.26).call("kept", 1,
			edgeMs/10), found: true, against: "with its own CPU it would serve more"},
		{name: "T1: others have the CPU", rec: waiting("redis 7.0.15").info(busy).mainThread(0.3, 0.69)},
		{name: "T1: half busy", rec: waiting("redis 7.0.15").info(busy).mainThread(0.5, 0.1)},
		{name: "T1: busy, and no call waits", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/10,
			edgeMs/10).info(busy).mainThread(0.97, 0), found: true, against: "calls hardly wait"},
		{name: "T1: on a crowded machine, and no call waits", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0,
			0).fresh(edgeMs/10, edgeMs/10).info(busy).mainThread(0.6, 0.35)},
		{name: "T1: one slow command fills the time", rec: waiting("redis 7.0.15").mainThread(0.99,
			0).info(map[string]float64{"cmdstat_keys.calls": 90, "cmdstat_keys.usec": 9e6})},
		{
			name: "T1: it copies bytes", rec: waiting("redis 7.0.15").mainThread(0.97, 0).call("kept", 1,
				edgeMs/10).info(map[string]float64{"total_commands_processed": 1e4, "total_net_output_bytes": 1e10}),
			found: true, doubted: true, against: "busy copying bytes",
		},
		{
			name: "T0: by the event loop's clock", rec: waiting("valkey 8.1.1").call("kept", 1,
				edgeMs/10).info(busy).info(map[string]float64{
				"eventloop_duration_sum":    9.8e6,
				"used_cpu_user_main_thread": 6, "used_cpu_sys_main_thread": 3,
			}),
			found: true, evidence: "eventloop_duration_sum",
		},
		{
			name: "T0: by INFO alone", rec: waiting("redis 6.2.14").call("kept", 1,
				edgeMs/10).info(busy).info(map[string]float64{
				"used_cpu_user_main_thread": 6,
				"used_cpu_sys_main_thread":  3.5,
			}), found: true,
			evidence: "0.95 cores",
		},
		{name: "T0: idle", rec: waiting("redis 6.2.14").info(map[string]float64{
			"used_cpu_user_main_thread": 1,
			"used_cpu_sys_main_thread":  1,
		})},
		{
			name: "T1: hundreds in the queue", rec: queuedCalls(600), found: true, doubted: true,
			against: "up to 212 calls are queued at a time, on 600 connections",
		},
		{name: "T1: hundreds of connections, few of them in the queue", rec: quicker(600), found: true},
		{name: "T1: few connections", rec: queuedCalls(100), found: true},
		{name: "T2: hundreds in the queue, and no pool of them", rec: queuedCalls(600).tapped(), found: true},
		{name: "nothing known", rec: waiting("redis 6.2.14")},
	})
}
