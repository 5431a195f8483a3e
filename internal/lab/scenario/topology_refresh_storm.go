package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// topologyRefreshStorm: each Lettuce client sends CLUSTER NODES and INFO once per period, on new connections. Ten
// clients that ask each 150 ms load a node as 4000 clients do that ask each minute. They ask their seeds only, since
// none of the other nodes runs.
var topologyRefreshStorm = Scenario{
	ID:    "topology-refresh-storm",
	Cause: "topology-refresh-storm",
	Title: "ten Lettuce 6 clients that refresh a map of 80 masters each 150 ms, Redis 6.0",
	Fixes: []string{"map-event-driven", "upgrade-server"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.refreshStorm(ctx, "redis-6.0.16", fleet.MapSpec{Masters: 80, RangesPerMaster: 6}, clients.Lettuce6,
			150*time.Millisecond)
	},
}

// topologyRefreshStorm300 has a bigger map, a longer period and a newer version of the library.
var topologyRefreshStorm300 = Scenario{
	ID:    "topology-refresh-storm-300-nodes",
	Cause: "topology-refresh-storm",
	Title: "ten Lettuce 7 clients that refresh a map of 150 masters and 150 replicas each 300 ms, Redis 5.0",
	Fixes: []string{"map-event-driven", "upgrade-server"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.refreshStorm(ctx, "redis-5.0.6", fleet.MapSpec{Masters: 150, Replicas: 1, RangesPerMaster: 6},
			clients.Lettuce7, 300*time.Millisecond)
	},
}

// refreshingClients are in one process. Each has its own map, timer and connections, as in a process of its own.
const refreshingClients = 10

// refreshStorm starts one node that knows a large cluster, clients that refresh its map, and a client without a map
// whose keys are all on that node.
func (l *Lab) refreshStorm(ctx context.Context, server servers.Name, m fleet.MapSpec, library clients.Name,
	period time.Duration,
) (Scene, error) {
	if l.Fixed("upgrade-server") {
		server = servers.Redis7015
	}
	s, err := l.startMap(ctx, server, m, fleet.Spec{CPUs: []int{0}})
	if err != nil {
		return Scene{}, err
	}
	reads := clients.Options{
		Addresses: []string{s.Addr}, Commands: readsOfSlot(0), Keys: Documents, Workers: 20,
		PoolSize: 20, MaxIdle: 20, Rate: 500,
	}
	if err := l.Client(ctx, ClientSpec{Program: clients.Redigo, CPU: otherCPU(), Options: reads}); err != nil {
		return Scene{}, err
	}
	asks := reads
	asks.Mode, asks.Rate, asks.Clients, asks.TopologyRefresh, asks.RefreshSeedsOnly = protocol.Cluster, 20,
		refreshingClients, period, true
	if l.Fixed("map-event-driven") {
		asks.TopologyRefresh, asks.RefreshAdaptive = 0, true
	}
	return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{Program: library, CPU: otherCPU(), Options: asks})
}

// startMap starts a server of a version that knows a cluster of nodes, none of which runs.
func (l *Lab) startMap(ctx context.Context, server servers.Name, m fleet.MapSpec, spec fleet.Spec) (*fleet.Instance,
	error,
) {
	bin, err := l.Cache.Get(ctx, server, l.Log)
	if err != nil {
		return nil, err
	}
	i, err := l.Fleet.StartMap(ctx, bin, m, spec)
	if err != nil {
		return nil, err
	}
	l.Defer(i.Stop)
	return i, nil
}
