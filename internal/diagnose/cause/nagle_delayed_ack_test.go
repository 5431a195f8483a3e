package cause_test

import "testing"

func TestNagleDelayedACK(t *testing.T) {
	calls := func(state string, ms int64) edge {
		e := newPath()
		for i := range int64(10) {
			e.seen(pathClient, "SET", i*1000*edgeMs, 5, part{"network", state, ms, ""}, part{"server", "exec", 1, ""})
		}
		return e
	}
	acks := func(e edge, n float64) edge { return e.host(map[string]float64{"net.DelayedACKs": n}) }
	steady := func(ms int64) edge {
		return newPath().lane(pathClient, 16, ms*edgeMs, 20*edgeMs).lane(pathOther, 50, edgeMs/5, 20*edgeMs)
	}
	explainEdge(t, find("nagle-delayed-ack"), []edgeCase{
		{
			name: "requests arrive 41 ms late", rec: acks(calls("out", 41), 12), found: true, min: 0.9,
			evidence: "10 of 10 slow calls (SET)", fix: "app[7]",
		},
		{
			name: "all calls of a connection take 42 ms", rec: acks(steady(42), 170), found: true, min: 0.9,
			evidence: "170 delayed acknowledgements", fix: "TCP_NODELAY",
		},
		{
			name: "42 ms, and the server's host was not watched", rec: steady(42), found: true, max: 0.8,
			against: "not seen",
		},
		{
			name: "42 ms without delayed acknowledgements", rec: acks(steady(42), 3), found: true, max: 0.55,
			against: "only 3",
		},
		{name: "requests are late by another time", rec: acks(calls("out", 25), 12)},
		{name: "the server was late for 41 ms", rec: acks(calls("throttled", 41), 12)},
		{name: "retransmitted", rec: acks(calls("retransmit", 45), 12)},
		{name: "the path itself takes that long", rec: acks(newEdge("redis 7.0.15").kept(41*edgeMs, 0,
			0).lane(pathClient, 16, 42*edgeMs, 0), 170)},
		{name: "an ordinary connection", rec: acks(steady(1), 2)},
	})
}
