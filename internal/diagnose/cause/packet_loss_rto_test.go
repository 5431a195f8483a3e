package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestPacketLossRTO(t *testing.T) {
	slow := func() edge {
		return newEdge("redis 7.0.15").kept(edgeMs/10, 205*edgeMs, 20).fresh(edgeMs/10, edgeMs/5)
	}
	retransmitted := func(e edge) edge {
		for i := int64(19); i < 200; i += 20 {
			e.retransmitted("kept", i*50*edgeMs, i*50*edgeMs+205*edgeMs, 1, 0)
		}
		return e
	}
	others := func(counters map[string]float64) edge {
		return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.05,
			0).host(map[string]float64{"net.OutSegs": 10_000, "sock.retrans_total": 100}).host(counters)
	}
	lossy := map[string]float64{
		"net.RetransSegs": 100, "net.TCPTimeouts": 60, "net.TCPFastRetrans": 30,
		"net.TCPLossProbes": 10,
	}
	acked := func(retransmitted int64, sureNs int64) edge {
		e := others(lossy)
		for i := range int64(20) {
			e.event(recording.SourceTap, recording.KindAcknowledged, i*400*edgeMs, 240*edgeMs,
				recording.AckDetail{
					Client: "10.9.0.1:1", Unacked: 9000, MinWaitNs: sureNs, Retransmitted: retransmitted,
					RTTMinNs: edgeMs,
				})
		}
		return e
	}
	// Replies that were late on their way back, one each 400 ms, each after a pause of its own; some with a request
	// that was retransmitted for nothing.
	lateReplies := func(ms, apart int64, retransmitted int) edge {
		e := newPath()
		for i := range int64(20) {
			at := i * apart * edgeMs
			e.seen(pathClient, "GET", at, 100, part{"server", "exec", 1, ""}, part{"network", "back", ms, ""})
			if int(i) < retransmitted {
				e.event(recording.SourceTap, recording.KindRetransmit, at, ms*edgeMs+edgeMs/2,
					recording.RetransmitDetail{
						Client: pathClient, From: recording.Client, State: "established",
						Why: recording.RetransmitTailProbe, Total: i + 1, Duplicates: i,
					})
			}
		}
		return e
	}
	dead := func(resends float64) edge {
		return others(map[string]float64{
			"net.RetransSegs": 24, "net.TCPTimeouts": 24,
			"sock.unanswered_resends": resends,
		}).level(recording.SourceHost, "sock.retransmitting", 6)
	}
	explainEdge(t, find("packet-loss-rto"), []edgeCase{
		{name: "T2: replies were lost before they left the server's host, which counts nothing", rec: lateReplies(206,
			400, 15), found: true, evidence: "20 replies arrived at least 180 ms after the server had sent " +
			"them, up to 206 ms; 15 of them right after"},
		{
			name: "T2: replies were late for longer than the timer, and nothing was retransmitted",
			rec: lateReplies(206,
				400, 0),
		},
		{name: "T2: replies were late by less than the timer", rec: lateReplies(90, 400, 15)},
		{name: "T2: this machine stalled, and its timers expired", rec: lateReplies(206, 1, 20)},
		{name: "T1: some connections are dead: all that was retransmitted went to them", rec: dead(24)},
		{
			name: "T1: some connections are dead, and others lose", rec: dead(9), found: true,
			against: "9 more were retransmitted again and again on connections where nothing came back",
		},
		{name: "T1: what was retransmitted was acknowledged at last", rec: dead(0), found: true},
		{
			name: "T2: replies to other hosts were acknowledged late, after they were retransmitted",
			rec:  acked(1, 240*edgeMs), found: true, evidence: "20 replies to clients at other addresses " +
				"acknowledged late, up to 240 ms",
		},
		{
			name: "T2: replies to other hosts were acknowledged late, and nothing was retransmitted",
			rec:  acked(0, 240*edgeMs), found: true, against: "20 replies to clients at other addresses acknowledged " +
				"late with nothing retransmitted, the worst 240 ms after the send, with 9000 bytes in " +
				"flight",
		},
		{
			name: "T0: the probe's socket retransmitted", rec: retransmitted(slow()), found: true,
			evidence: "10 of 10 slow calls", fix: "ethtool",
		},
		{
			name: "T1: and the server slept", rec: retransmitted(slow()).mainThread(0.05,
				0.01).host(map[string]float64{"net.RetransSegs": 10, "net.OutSegs": 1000}), found: true,
			evidence: "1.00 %",
		},
		{
			name: "T1: replies were lost", rec: slow().mainThread(0.05,
				0.01).host(map[string]float64{"net.RetransSegs": 10, "net.OutSegs": 1000, "sock.retrans_total": 10}),
			found: true, against: "follows from the server's counters",
		},
		{name: "T1: slow without a retransmission", rec: slow().mainThread(0.05,
			0.01).host(map[string]float64{"net.RetransSegs": 0, "sock.retrans_total": 0})},
		{name: "T1: others' retransmissions", rec: slow().mainThread(0.05,
			0.01).host(map[string]float64{"net.RetransSegs": 10, "sock.retrans_total": 0})},
		{name: "T1: the accept queue was full", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).freshCall(edgeMs,
			1000*edgeMs, edgeMs).retransmitted("fresh", edgeMs, 1002*edgeMs, 0, 1).
			host(map[string]float64{"net.ListenOverflows": 40}).level("host", "listen.queue", 17).level("host",
			"listen.backlog", 16)},
		{
			name: "T0: only SYNs are lost", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/10,
				edgeMs/5).freshCall(edgeMs, 1000*edgeMs, edgeMs).retransmitted("fresh", edgeMs, 1002*edgeMs, 0, 1),
			found: true, doubted: true, against: "only new connections",
		},
		{
			name: "T1: others lose", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.05,
				0).host(map[string]float64{"net.RetransSegs": 100, "net.OutSegs": 10_000, "sock.retrans_total": 100}),
			found: true, against: "own connections lost nothing",
		},
		{
			name: "T1: others lose, by their timers", rec: others(map[string]float64{
				"net.RetransSegs": 100,
				"net.TCPTimeouts": 60, "net.TCPFastRetrans": 30, "net.TCPLossProbes": 10,
			}), found: true,
		},
		{
			name: "T1: others do not read: tail loss probes and window probes",
			rec: others(map[string]float64{
				"net.RetransSegs": 100, "net.TCPTimeouts": 0, "net.TCPFastRetrans": 0,
				"net.TCPLossProbes": 60, "sock.rwnd_limited_max_ns": 6e9,
			}),
		},
		{
			name: "T1: others do not read: window probes only",
			rec: others(map[string]float64{
				"net.RetransSegs": 100, "net.TCPTimeouts": 0, "net.TCPFastRetrans": 0,
				"net.TCPLossProbes": 0, "sock.rwnd_limited_max_ns": 6e9,
			}),
		},
		{name: "T1: others do not read, and connect to nobody", rec: others(map[string]float64{
			"net.RetransSegs":   120,
			"net.TCPSynRetrans": 20, "net.TCPTimeouts": 20, "net.TCPFastRetrans": 0, "net.TCPLossProbes": 60,
			"sock.rwnd_limited_max_ns": 6e9,
		})},
		{
			name: "T1: some do not read, and others lose", rec: others(map[string]float64{
				"net.RetransSegs": 100,
				"net.TCPTimeouts": 40, "net.TCPLossProbes": 30, "sock.rwnd_limited_max_ns": 6e9,
			}), found: true,
			against: "60 of these were not lost",
		},
		{name: "T1: slow for another reason while others do not read", rec: slow().mainThread(0.05,
			0.01).host(map[string]float64{
			"net.RetransSegs": 30, "net.TCPTimeouts": 0, "net.TCPLossProbes": 0,
			"net.OutSegs": 1000, "sock.retrans_total": 30, "sock.rwnd_limited_max_ns": 6e9,
		})},
		{
			name: "T1: tail loss probes for segments that had arrived (DSACK), while this host is late itself",
			rec: slow().mainThread(0.05, 0.01).host(map[string]float64{
				"net.RetransSegs": 20, "net.TCPLossProbes": 25,
				"net.TCPTimeouts": 0, "net.TCPFastRetrans": 1, "net.TCPDSACKRecvSegs": 20, "net.OutSegs": 500_000,
				"sock.retrans_total": 20,
			}),
		},
		{
			name: "T1: tail loss probes found losses, and one segment had arrived", rec: slow().mainThread(0.05,
				0.01).host(map[string]float64{
				"net.RetransSegs": 20, "net.TCPLossProbes": 20,
				"net.TCPTimeouts": 0, "net.TCPDSACKRecvSegs": 1, "net.OutSegs": 5000, "sock.retrans_total": 20,
			}),
			found: true,
		},
		{
			name: "T1: others' segments were retransmitted twice by mistake",
			rec: others(map[string]float64{
				"net.RetransSegs": 100, "net.TCPTimeouts": 20, "net.TCPFastRetrans": 80,
				"net.TCPDSACKRecvSegs": 98,
			}),
		},
		{name: "T1: a segment now and then", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.05,
			0).host(map[string]float64{"net.RetransSegs": 2, "net.OutSegs": 10_000, "sock.retrans_total": 2})},
		{name: "T0: slow for another reason", rec: slow()},
		{name: "nothing slow", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0)},
	})
}
