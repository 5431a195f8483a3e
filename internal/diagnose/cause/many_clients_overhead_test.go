package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestManyClientsOverhead(t *testing.T) {
	listed := func(e edge) edge {
		for i := range int64(10) {
			at := i*1000*edgeMs + 495*edgeMs
			e.event(recording.SourceServer, recording.KindSlowlog, at, 30*edgeMs, recording.SlowlogDetail{
				ID:      i,
				Command: "CLIENT LIST", ArgCount: 2, Client: "10.0.0.9:400", WindowNs: 10 * edgeMs,
			})
			e.call("kept", at-25*edgeMs, 28*edgeMs)
		}
		return e
	}
	well := func() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/10, edgeMs/5) }
	explainEdge(t, find("many-clients-overhead"), []edgeCase{
		{
			name: "T0: CLIENT LIST walks thousands", rec: listed(well()).level("server", "connected_clients", 15_000),
			found: true, evidence: "CLIENT LIST took", fix: "CLIENT LIST ID",
		},
		{name: "T0: few clients", rec: listed(well()).level("server", "connected_clients", 50)},
		{
			name: "T0: thousands wait in the queue", rec: newEdge("redis 7.0.15").kept(80*edgeMs, 0, 0).call("kept", 1,
				edgeMs).fresh(edgeMs/10, 80*edgeMs).
				info(map[string]float64{"total_commands_processed": 600_000}).level("server", "connected_clients",
				5000),
			found: true, evidence: "calls are queued at a time",
		},
		{name: "T0: thousands that are idle", rec: well().level("server", "connected_clients",
			15_000).info(map[string]float64{"total_commands_processed": 600_000})},
		{name: "nothing known", rec: well()},
	})
}
