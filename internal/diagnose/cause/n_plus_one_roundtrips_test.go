package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestNPlusOneRoundtrips(t *testing.T) {
	far := func() edge {
		return newEdge("redis 7.0.15").kept(2*edgeMs, 0, 0).info(map[string]float64{
			"cmdstat_get.calls": 3000,
			"cmdstat_get.usec":  30_000,
		})
	}
	near := func() edge {
		return newPath().info(map[string]float64{"cmdstat_get.calls": 300_000, "cmdstat_get.usec": 600_000})
	}
	distant := func() edge { return newEdge("redis 7.0.15").kept(20*edgeMs, 0, 0).fresh(19*edgeMs, 20*edgeMs) }
	explainEdge(t, find("n-plus-one-roundtrips"), []edgeCase{
		{
			name: "one call after the other, 2 ms each", rec: far().lane(pathClient, 240, 2*edgeMs+edgeMs/5, 2*edgeMs),
			found: true, doubted: true, evidence: "240 calls per second each", against: "inferred", fix: "MGET",
		},
		{name: "threads share the connection", rec: far().lane(pathClient, 240, 2*edgeMs+edgeMs/5,
			2*edgeMs).prompts(pathClient, 235).inTurns(pathClient, 200)},
		{name: "threads take turns of 24 calls each", rec: far().lane(pathClient, 240, 2*edgeMs+edgeMs/5,
			2*edgeMs).prompts(pathClient, 235).inTurns(pathClient, 10), found: true},
		{name: "each call sent right after the reply before", rec: far().lane(pathClient, 240, 2*edgeMs+edgeMs/5,
			2*edgeMs).prompts(pathClient, 235), found: true, evidence: "each waits for the one " +
			"before", fix: "MGET"},
		{
			name: "pages of 150 calls in a row, 46 % of the time", rec: far().lane(pathClient, 230, 2*edgeMs,
				2*edgeMs+edgeMs/3).prompts(pathClient, 228), found: true,
			evidence: "waiting 46 % of the time", fix: "MGET",
		},
		{name: "half of the time, at random times", rec: far().lane(pathClient, 230, 2*edgeMs,
			2*edgeMs+edgeMs/3).prompts(pathClient, 60)},
		{name: "as many calls, at random times", rec: far().lane(pathClient, 240, 2*edgeMs+edgeMs/5,
			2*edgeMs).prompts(pathClient, 100)},
		{
			name: "a distance of 20 ms", rec: distant().lane(pathClient, 40, 22*edgeMs, edgeMs), found: true,
			doubted: true,
		},
		{name: "a queue of 20 ms, on a path that was shorter once", rec: distant().level(recording.SourceHost,
			"callers.least_rtt_ns", float64(edgeMs)/20).lane(pathClient, 40, 22*edgeMs, edgeMs)},
		{name: "a pool that is far away and mostly idle", rec: far().lane(pathClient, 50, 2*edgeMs,
			18*edgeMs).lane(pathOther, 50, 2*edgeMs, 18*edgeMs)},
		{name: "pipelines: calls overlap", rec: far().lane(pathClient, 2000, edgeMs/4, edgeMs/4)},
		{name: "a closed loop at loopback", rec: near().lane(pathClient, 9000, edgeMs/10, edgeMs/100)},
		{name: "calls wait for the server, not for the path", rec: near().lane(pathClient, 300, 3*edgeMs, edgeMs/100)},
		{
			name: "pages of 68 calls on one host, four per second", rec: near().lane(pathClient, 300, edgeMs/20,
				3*edgeMs).chained(pathClient, "GET", 4, 272, 4*6*edgeMs, 4*5*edgeMs),
			found: true, evidence: "68 calls of GET", against: "inferred", fix: "MGET",
		},
		{name: "calls of 10 µs, and gaps in which the caller had no CPU", rec: near().lane(pathClient, 300,
			edgeMs/20, 3*edgeMs).chained(pathClient, "GET", 4, 272, 4*6*edgeMs, 4*5*edgeMs).all("GET", 3000,
			edgeMs/100)},
		{name: "a loop without end, cut by what else runs there", rec: near().lane(pathClient, 9000, edgeMs/10,
			edgeMs/100).chained(pathClient, "GET", 3, 8900, 980*edgeMs, 900*edgeMs)},
		{name: "a queue's worker, one script after the other", rec: near().lane(pathClient, 300, edgeMs/20,
			3*edgeMs).chained(pathClient, "EVALSHA", 4, 272, 4*6*edgeMs, 4*5*edgeMs)},
		{name: "workers that are hardly ever free, 1.7 ms between their calls", rec: near().lane(pathClient, 100,
			3*edgeMs, 5*edgeMs).chained(pathClient, "GET", 4, 52, 240*edgeMs, 150*edgeMs)},
		{name: "walks of a keyspace, most of which the server works", rec: near().info(map[string]float64{
			"cmdstat_scan.calls": 3000, "cmdstat_scan.usec": 3000 * 70,
		}).lane(pathClient, 300, edgeMs/20, 3*edgeMs).chained(pathClient, "SCAN", 4, 272, 4*6*edgeMs, 4*5*edgeMs)},
		{
			name: "walks of a keyspace with few keys at a time", rec: near().info(map[string]float64{
				"cmdstat_scan.calls": 3000, "cmdstat_scan.usec": 3000 * 5,
			}).lane(pathClient, 300, edgeMs/20, 3*edgeMs).chained(pathClient, "SCAN", 4, 272, 4*6*edgeMs, 4*5*edgeMs),
			found: true, evidence: "68 calls of SCAN", fix: "COUNT",
		},
		{name: "one page among thousands of calls", rec: near().lane(pathClient, 3000, edgeMs/20,
			edgeMs/5).chained(pathClient, "GET", 1, 68, 6*edgeMs, 5*edgeMs)},
		{name: "few calls", rec: far().lane(pathClient, 2, 2*edgeMs, 1*edgeMs)},
	})
}
