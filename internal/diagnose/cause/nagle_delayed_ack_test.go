package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestNagleDelayedACK(t *testing.T) {
	// socket is what the kernel of the client says of its socket; empty: it was not seen.
	calls := func(state string, ms int64, socket string) edge {
		e := newPath()
		if socket != "" {
			e.ends(pathClient, socket)
		}
		for i := range int64(10) {
			e.seen(pathClient, "SET", i*1000*edgeMs, 5, part{"network", state, ms, ""}, part{"server", "exec", 1, ""})
		}
		return e
	}
	acks := func(e edge, n float64) edge { return e.host(map[string]float64{"net.DelayedACKs": n}) }
	on, off := recording.NagleOn, recording.NagleOff
	pauses := acks(newPath(), 12)
	for i := range int64(20) { // a program that pauses between the pieces, for any time
		pauses.seen(pathClient, "SET", i*400*edgeMs, 5, part{"network", "out", 20 + 3*i, ""},
			part{"server", "exec", 1, ""})
	}
	explainEdge(t, find("nagle-delayed-ack"), []edgeCase{
		{
			name: "requests arrive 41 ms late", rec: acks(calls("out", 41, on), 12), found: true,
			evidence: "no TCP_NODELAY", fix: "app[7]",
		},
		{
			name: "from another host", rec: acks(calls("out", 41, ""), 12), found: true,
			evidence: "10 of 10 slow calls (SET)", against: "not seen",
		},
		{
			name: "from another host, without delayed acknowledgements", rec: acks(calls("out", 41, ""), 3),
			found: true, doubted: true, against: "only 3",
		},
		{name: "with TCP_NODELAY", rec: acks(calls("out", 41, off), 12)},
		{name: "a program that pauses while it sends", rec: pauses},
		{name: "requests are late by another time", rec: acks(calls("out", 25, on), 12)},
		{name: "the server was late for 41 ms", rec: acks(calls("throttled", 41, on), 12)},
		{name: "retransmitted", rec: acks(calls("retransmit", 45, on), 12)},
		{
			name: "all calls of a connection take 42 ms on average", found: false,
			rec: acks(newPath().lane(pathClient, 16, 42*edgeMs, 20*edgeMs).ends(pathClient, on), 170),
		},
		{
			name: "the path itself takes that long",
			rec: acks(newEdge("redis 7.0.15").kept(41*edgeMs, 0, 0).seen(pathClient, "SET", edgeMs, 5,
				part{"network", "out", 42, ""}), 170),
		},
	})
}
