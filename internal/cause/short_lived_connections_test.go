package cause

import "testing"

func TestShortLivedConnections(t *testing.T) {
	probed := func() edge { return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs/5, edgeMs/5) }
	churn := map[string]float64{"total_connections_received": 10_020, "total_commands_processed": 10_300}
	explainEdge(t, shortLivedConnections, []edgeCase{
		{name: "T0: a connection per call", rec: probed().info(churn).level("server", "connected_clients", 5), found: true, min: 0.85, max: 0.92, evidence: "1000 connections per second were opened and closed", fix: "pool"},
		{name: "T1: and TIME_WAIT", rec: probed().info(churn).level("host", "sock.time_wait", 20_000), found: true, min: 0.95, evidence: "TIME_WAIT"},
		{name: "T0: a health check every half second", rec: probed().info(map[string]float64{"total_connections_received": 40, "total_commands_processed": 300})},
		{name: "T0: only the probe's own", rec: probed().info(map[string]float64{"total_connections_received": 20, "total_commands_processed": 300})},
		{name: "T0: a pool that grows", rec: probed().info(map[string]float64{"total_connections_received": 1000, "connected_clients": 980, "total_commands_processed": 5000})},
		{name: "T0: long sessions that come and go", rec: probed().info(map[string]float64{"total_connections_received": 500, "total_commands_processed": 1e6})},
		{name: "T0: a few churn beside a busy pool", rec: probed().info(map[string]float64{"total_connections_received": 3000, "total_commands_processed": 120_000}), found: true, evidence: "opened and closed"},
		{name: "no probe", rec: newEdge("redis 5.0.6").info(churn), found: true},
		{name: "nothing known", rec: newEdge("redis 5.0.6")},
		{name: "T0: the library is known", rec: probed().info(churn).snapshot("server", "clients", `{"id":1,"addr":"10.1.1.1:4000","lib_name":"redis-py","lib_ver":"5.0"}`), found: true, fix: "redis-py: make one redis.Redis"},
	})
}
