package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/cluster"
)

// topologyRefreshStorm is incident 002: Lettuce asks for CLUSTER NODES and INFO, each client in its period and on new
// connections. What one node sees of 4000 clients that ask all nodes each minute is seen of ten that ask it each 150
// ms. They ask their seeds only, since of the other nodes none runs.
var topologyRefreshStorm = Incident{
	ID:    "topology-refresh-storm",
	Cause: "topology-refresh-storm",
	Title: "ten Lettuce 6 clients that refresh their topology each 150 ms: a map of 80 masters, Redis 6.0",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.refreshStorm(ctx, "redis-6.0.16", fleet.MapSpec{Masters: 80, RangesPerMaster: 6}, clients.Lettuce6,
			150*time.Millisecond)
	},
}

// topologyRefreshStorm300 has a bigger map and fewer who ask, with the library's newer version.
var topologyRefreshStorm300 = Incident{
	ID:    "topology-refresh-storm-300-nodes",
	Cause: "topology-refresh-storm",
	Title: "ten Lettuce 7 clients that refresh their topology each 300 ms: a map of 150 masters with a replica each, " +
		"Redis 5.0",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.refreshStorm(ctx, "redis-5.0.6", fleet.MapSpec{Masters: 150, Replicas: 1, RangesPerMaster: 6},
			clients.Lettuce7, 300*time.Millisecond)
	},
}

// refreshingClients are in one process: each has its own map, timer and connections, as in a process of its own.
const refreshingClients = 10

// refreshStorm starts one node that knows a cluster, some clients that ask it for the map, and an application whose
// keys are all on that node, to which no map matters.
func (l *Lab) refreshStorm(ctx context.Context, server servers.Name, m fleet.MapSpec, who clients.Name,
	period time.Duration,
) (Scene, error) {
	s, err := l.startMap(ctx, server, m, fleet.Spec{CPUs: []int{0}})
	if err != nil {
		return Scene{}, err
	}
	reads := clients.Options{
		Addresses: []string{s.Addr}, Commands: readsOfSlot(0), Keys: documents, Workers: 20,
		PoolSize: 20, Rate: 500,
	}
	if err := l.Client(ctx, clientSpec{Program: clients.Redigo, CPU: otherCPU(), Options: reads}); err != nil {
		return Scene{}, err
	}
	asks := reads
	asks.Mode, asks.Rate, asks.Clients, asks.TopologyRefresh, asks.RefreshSeedsOnly = protocol.Cluster, 20,
		refreshingClients, period, true
	return Scene{Target: s.Addr}, l.Client(ctx, clientSpec{Program: who, CPU: otherCPU(), Options: asks})
}

// readsOfSlot are GETs of keys in one slot, which one node has.
func readsOfSlot(slot uint16) []clients.Command {
	return []clients.Command{{Args: []string{"GET", "{" + cluster.TagForSlot(slot) + "}doc:{n}"}}}
}

// startMap is Start for a server of some version which knows a cluster of nodes that do not run.
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
