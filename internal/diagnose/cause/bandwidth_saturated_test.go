package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestBandwidthSaturated(t *testing.T) {
	// queued is a path on which four connections have 40 segments on the way at any time, of so many each second.
	queued := func(e edge, perSecond float64, leastNs int64) edge {
		return e.host(map[string]float64{"sock.sent_segments": perSecond * 10}).level(recording.SourceHost,
			"sock.on_the_way", 160).level(recording.SourceHost, "sock.conns_on_the_way", 4).level(recording.SourceHost,
			"sock.least_rtt_ns", float64(leastNs)).info(map[string]float64{"total_net_output_bytes": 75e6})
	}
	near := func() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).mainThread(0.1, 0.01) }
	slow := func(e edge) edge {
		for i := range int64(50) {
			e.seen(pathClient, "GET", i*150*edgeMs, 60_000, part{recording.Server, "exec", 0, ""},
				part{recording.Network, "back", 31, ""})
		}
		return e
	}
	explainEdge(t, find("bandwidth-saturated"), []edgeCase{
		{
			name: "T2: replies wait on the path", rec: slow(queued(near(), 5000, edgeMs/10)), found: true,
			evidence: "on their way for 32 ms on average; the least round trip of the same connections is 100 µs",
			fix:      "GET of app smaller",
		},
		{
			name: "T1: and in the queue of a device of this host", rec: queued(near(), 5000, edgeMs/10).level(
				recording.SourceHost, "queue.eth0 tbf.backlog_bytes", 250e3), found: true,
			evidence: "250 kB wait in the queue of eth0 tbf", against: "how long the callers wait was not seen",
			fix: "egress-bandwidth",
		},
		{name: "T1: a long path", rec: queued(near(), 5000, 30*edgeMs)},
		{name: "T1: replies that arrive at once", rec: queued(near(), 500_000, edgeMs/10)},
		{name: "T1: few segments", rec: queued(near(), 5, edgeMs/10)},
		{name: "T1: only replicas wait for nothing", rec: queued(near(), 5000, edgeMs/10).level(recording.SourceServer,
			"connected_slaves", 4)},
	})
}
