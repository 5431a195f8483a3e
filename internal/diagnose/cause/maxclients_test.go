package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestMaxClients(t *testing.T) {
	refused := func(e edge, source string) edge {
		for i := range int64(20) {
			e.event(source, recording.KindError, i*500*edgeMs, 0, recording.ErrorDetail{
				Phase: "handshake", Code: "ERR",
				Message: "10.0.0.5:6379: the server refuses new connections, maxclients is reached",
			})
		}
		return e
	}
	outside := func() edge {
		e := newEdge("")
		for i := range int64(200) {
			e.Call(recording.Call{
				Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: edgeNode, Slot: -1,
				IntendedNs: i * 50 * edgeMs, EndNs: edgeEnd, Error: "unfinished when the watch ended",
			})
		}
		return e
	}
	well := func() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0) }
	explainEdge(t, find("maxclients"), []edgeCase{
		{
			name: "T0: the probe is refused", rec: refused(outside(), recording.SourceProbe), found: true,
			evidence: "were refused", fix: "CONFIG SET maxclients",
		},
		{
			name: "T1: and the process may open few files", rec: refused(outside(),
				recording.SourceServer).level("host",
				"fd.limit", 1024).level("host", "fd.count", 1020), found: true, evidence: "1 020 open files",
			fix: "LimitNOFILE",
		},
		{name: "T0: others are refused", rec: well().info(map[string]float64{
			"rejected_connections":       100,
			"total_connections_received": 50,
		}).level("server", "connected_clients", 50).level("server", "maxclients",
			50), found: true, evidence: "maxclients is 50"},
		{name: "T0: refused long ago", rec: well().level("server", "rejected_connections", 100)},
		{name: "T0: another error", rec: well().event(recording.SourceProbe, recording.KindError, 0, 0,
			recording.ErrorDetail{Message: "connection refused"})},
	})
}
