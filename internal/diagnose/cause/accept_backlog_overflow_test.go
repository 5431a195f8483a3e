package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestAcceptBacklogOverflow(t *testing.T) {
	well := func() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/10, edgeMs/5) }
	lost := func() edge {
		e := well()
		for _, at := range []int64{2_100, 4_100, 6_100} {
			e.freshCall(at*edgeMs, 1000*edgeMs, edgeMs/5).retransmitted("fresh", at*edgeMs, (at+1001)*edgeMs, 0, 1)
		}
		return e
	}
	queue := func(e edge, drops, longest, limit float64) edge {
		return e.host(map[string]float64{"net.ListenOverflows": drops}).level("host", "listen.queue",
			longest).level("host", "listen.backlog", limit)
	}
	late := func(e edge, conns int) edge {
		for i := range int64(conns) {
			e.event(recording.SourceTap, recording.KindOpen, (2000+10*i)*edgeMs, 0,
				recording.ConnDetail{Side: recording.Client, Comm: "app", DialNs: 1003 * edgeMs})
		}
		return e
	}
	explainEdge(t, find("accept-backlog-overflow"), []edgeCase{
		{name: "T2: the queue is short and never seen full, clients came late", rec: late(queue(well(), 300, 0, 4),
			200), found: true, evidence: "200 of 200 connections"},
		{name: "T2: more came late than were dropped", rec: late(queue(well(), 100, 0, 511), 200)},
		{
			name: "T1: the probe was hit", rec: queue(lost(), 300, 17,
				16).config(map[string]string{"tcp-backlog": "16"}),
			found: true, evidence: "17 connections waited", fix: "tcp-backlog from 16 to 4096",
		},
		{
			name: "T1: the probe was lucky", rec: queue(well(), 300, 17, 16), found: true,
			evidence: "dropped 300",
		},
		{name: "T1: a neighbour's drops", rec: queue(well(), 300, 0, 511)},
		{name: "T1: SYNs lost on the way", rec: queue(lost(), 0, 0, 511)},
		{
			name: "T1: the loop was stopped", rec: queue(lost().kept(edgeMs/10, 2000*edgeMs, 4), 300, 17, 16),
			found: true, against: "the root is what keeps the event loop from accepting",
		},
		{name: "T0: only new connections lose", rec: lost(), found: true},
		{
			name: "T0: tiny backlog", rec: lost().config(map[string]string{"tcp-backlog": "16"}), found: true,
		},
		{name: "T0: open connections lose too", rec: lost().call("kept", 4*edgeMs, 210*edgeMs).retransmitted("kept",
			4*edgeMs,
			214*edgeMs, 1, 0)},
		{name: "nothing lost", rec: well()},
	})
}
