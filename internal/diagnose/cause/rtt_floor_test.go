package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestRTTFloor(t *testing.T) {
	far := func(connect int64) edge {
		return newEdge("redis 7.0.15").kept(20*edgeMs, 0, 0).fresh(connect,
			20*edgeMs).info(map[string]float64{"cmdstat_get.calls": 100, "cmdstat_get.usec": 300})
	}
	idle := map[string]float64{"used_cpu_user_main_thread": 0.1, "used_cpu_sys_main_thread": 0.1}
	withClient := func(e edge, rttNs int64) edge {
		return e.event(recording.SourceTap, recording.KindAcknowledged, edgeMs, 20*edgeMs,
			recording.AckDetail{Client: "10.9.0.1:1", MinWaitNs: edgeMs, RTTMinNs: rttNs})
	}
	cut := far(edgeMs / 10).info(idle) // by the server, and each call has to dial again
	for i := range 30 {
		at := int64(i+1) * 200 * edgeMs
		cut.conn(life{port: 5000 + i, from: at, to: at + 150*edgeMs, work: 1, ops: greets, trips: 2, callNs: 20 *
			edgeMs, idleNs: 90 * edgeMs, by: recording.Server, dialNs: 20 * edgeMs})
	}
	held := far(edgeMs / 10).info(idle) // five calls were sent, each waited, and the calls that were due meanwhile, too
	for i := range held.Calls {
		if held.Calls[i].Conn == "kept" && i%40 > 0 {
			held.Calls[i].StartNs = held.Calls[i].EndNs
		}
	}
	explainEdge(t, find("rtt-floor"), []edgeCase{
		{name: "T0: few calls were sent", rec: held},
		{
			name: "T2: other clients are as far", rec: withClient(far(19*edgeMs).info(idle), 18*edgeMs),
			found: true, evidence: "best round trip of clients at other addresses is 18 ms, too",
		},
		{
			name: "T2: other clients are near", rec: withClient(far(19*edgeMs).info(idle), edgeMs/5), found: true,
			against: "best round trip of clients at other addresses is only 200 µs",
		},
		{
			name: "T0: distance", rec: far(19 * edgeMs).info(idle), found: true,
			evidence: "no process takes part in it",
			against:  "a queue on the path that was never empty looks the same", fix: "region",
		},
		{
			name: "T1: distance, as the kernel knows it", rec: far(19*edgeMs).info(idle).level(recording.SourceHost,
				"callers.least_rtt_ns", float64(19*edgeMs)), found: true, fix: "region",
		},
		{
			name: "T1: a queue, of a path that was shorter once", rec: far(19*edgeMs).info(idle).level(
				recording.SourceHost, "callers.least_rtt_ns", 0.2*float64(edgeMs)),
		},
		{
			name: "T0: a proxy that is slow", rec: far(edgeMs / 10).info(idle), found: true,
			evidence: "what answers it is near", fix: "flush or batch timer",
		},
		{name: "T1: the server sleeps", rec: far(19*edgeMs).mainThread(0.02, 0), found: true},
		{
			name: "T0: nothing of the server is known", rec: far(edgeMs / 10), found: true,
			against: "was not seen",
		},
		{
			name: "T0: a saturated server is as steady",
			rec: far(edgeMs / 10).info(map[string]float64{
				"used_cpu_user_main_thread": 8,
				"used_cpu_sys_main_thread":  1.8,
			}),
		},
		{name: "T1: the disk takes the time", rec: far(edgeMs/10).mainThread(0.02, 0).event(recording.SourceHost,
			recording.KindBlocked, 0, 8000*edgeMs, recording.ThreadDetail{Share: 1, Syscall: "fdatasync"})},
		{
			name:  "T0: the disk may take the time",
			rec:   far(edgeMs / 10).info(idle).config(map[string]string{"appendfsync": "always", "appendonly": "yes"}),
			found: true, doubted: true, against: "appendfsync",
		},
		{name: "T2: callers that dial for each call", rec: cut, found: true, against: "lose 75 % of their time on " +
			"connections outside their calls"},
		{name: "T0: a tail and no floor", rec: newEdge("redis 7.0.15").kept(20*edgeMs, 0, 0).call("kept", 5,
			edgeMs).info(idle)},
		{name: "T0: next door", rec: newEdge("redis 7.0.15").kept(edgeMs/3, 0, 0).info(idle)},
		{name: "T0: the command itself is slow", rec: newEdge("redis 7.0.15").kept(20*edgeMs, 0,
			0).info(idle).info(map[string]float64{"cmdstat_get.calls": 100, "cmdstat_get.usec": 1e6})},
	})
}
