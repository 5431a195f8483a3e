package cause_test

import (
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// greetedBy is a server under TLS with so many new connections, and a main thread that runs for so much of the time.
func greetedBy(connections, commands, run float64) edge {
	e := newEdge("redis 7.0.15").config(map[string]string{"tls-port": "6379"}).mainThread(run, 0.1)
	return e.info(map[string]float64{
		"total_connections_received": connections, "total_commands_processed": commands,
		"cmdstat_get.calls": commands, "cmdstat_get.usec": commands,
	})
}

// hello adds activities of the main thread that did handshakes, each ns long, as many as fit one after the other, and
// calls that wait for ten of them.
func (e edge) hello(count int, ns int64, waits bool) edge {
	for i := range count {
		at := second + int64(i)*ns*2
		client := address(20_000 + i)
		e.event(recording.SourceTap, recording.KindOpen, at-edgeMs, 0, recording.ConnDetail{
			Client: client,
			Side:   recording.Server,
		})
		e.event(recording.SourceTap, recording.KindActivity, at, ns, recording.ActivityDetail{
			Op: "?", Calls: 1, Bytes: 1483,
			Client: client, OnCPUNs: ns,
		})
		if waits && i%20 == 0 {
			e.call("kept", at, ns*20, recording.Segment{
				Actor: account.Server, State: account.Busy, FromNs: at,
				ToNs: at + ns*20,
			})
		}
	}
	return e
}

func TestTLSHandshakeStorm(t *testing.T) {
	quiet := func(e edge) edge { return e.kept(edgeMs/10, 0, 0) }
	explainEdge(t, find("tls-handshake-storm"), []edgeCase{
		{
			name: "T0: the main thread's time goes into new connections", rec: quiet(greetedBy(6000, 20_000, 0.8)),
			found: true, evidence: "600 new connections per second", against: "went into handshakes is " +
				"inferred", fix: "ECDSA",
		},
		{name: "T2: and each handshake was seen", rec: greetedBy(3500, 7000, 0.5).kept(edgeMs/10, 0, 0).hello(3500,
			edgeMs, true), found: true, evidence: "each takes 1 ms"},
		{name: "T2: bursts, between which it sleeps", rec: greetedBy(600, 2000, 0.1).kept(edgeMs/10, 0, 0).hello(600,
			edgeMs, true), found: true, evidence: "slow calls waited while it did handshakes"},
		{
			name: "each caller waits for its own, and no other call waits",
			rec: quiet(greetedBy(1500, 1500, 0.1)).hello(1500,
				edgeMs/3, false),
		},
		{name: "without TLS", rec: quiet(newEdge("redis 7.0.15").mainThread(0.8,
			0.1).info(map[string]float64{"total_connections_received": 6000, "total_commands_processed": 20_000}))},
		{name: "few new connections, many commands", rec: quiet(greetedBy(30, 400_000, 0.9))},
		{
			name: "some new connections, and a thread that is busy with something else",
			rec:  quiet(greetedBy(250, 2000, 0.9)),
		},
		{name: "a pool that opens a few", rec: quiet(greetedBy(50, 10_000, 0.05))},
	})
}
