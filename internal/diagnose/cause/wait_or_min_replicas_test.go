package cause_test

import (
	"testing"

	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

func TestWaitForReplicas(t *testing.T) {
	seen := func(op string) edge {
		e := newPath().level(recording.SourceServer, "slave0.lag", 4).
			level(recording.SourceServer, "slave0.port", 6380).
			level(recording.SourceServer, "slave0.offset", 1000).level(recording.SourceServer, "connected_slaves", 1).
			info(map[string]float64{"master_repl_offset": 50_000})
		for i := range int64(5) {
			e.seen(pathClient, op, (2*i+1)*1000*edgeMs, 5, part{"server", "exec", 1, ""},
				part{"server", "ack-wait", 80, ""})
		}
		return e
	}
	// A server that is polled every half second, at which one client is blocked.
	counted := func(calls float64, blocked ...float64) edge {
		e := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).info(map[string]float64{"cmdstat_wait.calls": calls})
		for i, v := range blocked {
			at := int64(i) * 500 * edgeMs
			e.event(recording.SourceServer, recording.KindPoll, at, edgeMs, nil)
			e.Sample(recording.Sample{
				TimeNs: at, Source: recording.SourceServer, Subject: edgeNode, Name: "blocked_clients", Value: v,
			})
		}
		return e.clientsOf(caller.Client{ID: 7, Addr: pathClient, Flags: "b", Cmd: "wait"})
	}
	always := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	explainEdge(t, find("wait-or-min-replicas"), []edgeCase{
		{
			name: "WAIT, and a replica that is late", rec: seen("WAIT"), found: true,
			evidence: "the replica at port 6380 acknowledged nothing for up to 4 s (lag), and was up to 49 kB behind",
			fix:      "run slowpath doctor against the replica at port 6380",
		},
		{
			name:  "WAITAOF, appendfsync everysec",
			rec:   seen("WAITAOF").config(map[string]string{"appendonly": "yes", "appendfsync": "everysec"}),
			found: true, evidence: "writes reach the disk once per second", fix: "appendfsync always",
		},
		{
			name: "T0: a call takes as long as the clients are blocked", rec: counted(20, always...), found: true,
			evidence: "20 calls of WAIT took about 500 ms each", fix: "Bring the replicas back",
		},
		{name: "T0: calls are short", rec: counted(10_000, always...)},
		{name: "T0: blocked once", rec: counted(2, 0, 1, 0, 0, 0, 0, 0, 0, 0)},
		{
			name: "T0: others are blocked in BLPOP",
			rec:  counted(20, always...).info(map[string]float64{"cmdstat_blpop.calls": 3}),
		},
		{
			name: "T0: a module's command blocks",
			rec: counted(20,
				always...).clientsOf(caller.Client{ID: 8, Addr: pathOther, Flags: "b", Cmd: "my.command"}),
		},
		{name: "nothing waits", rec: newPath()},
	})
}
