package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// staleTopologySilentMaster stops a master for good. Its replica takes over, but Lettuce 6 as it comes asks for the map
// only when it begins, and a master that says nothing sends no MOVED: its callers go on waiting for it.
var staleTopologySilentMaster = Incident{
	ID:    "stale-topology-silent-master",
	Cause: "stale-topology-silent-master",
	Title: "a master of three is stopped for good under Lettuce 6 without topology refresh; its replica has taken over",
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterSilent(ctx, clients.Lettuce6, clients.Options{Workers: 20, Rate: 300, Random: true})
	},
}

// staleTopologyGoRedis has timeouts that free its callers after 5 s each, and a library that hears of the new master by
// MOVED only.
var staleTopologyGoRedis = Incident{
	ID:    "stale-topology-silent-master-go-redis",
	Cause: "stale-topology-silent-master",
	Title: "a master of three is stopped for good under go-redis, which asks for the map again after a minute",
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterSilent(ctx, clients.GoRedis9, clients.Options{Workers: 20, Rate: 300, Random: true})
	},
}

// staleTopologyLong has a failover that is over when doctor comes, and callers that have not noticed.
var staleTopologyLong = Incident{
	ID:    "stale-topology-silent-master-long-since",
	Cause: "stale-topology-silent-master",
	Title: "a master of three was stopped for good under Lettuce 6 without topology refresh, and replaced before " +
		"doctor looks",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.callersOfCluster(ctx, clients.Lettuce6, clients.Options{Workers: 20, Rate: 300, Random: true})
		if err != nil {
			return Scene{}, err
		}
		if err := l.stop(c.Nodes[0]); err != nil {
			return Scene{}, err
		}
		return Scene{Target: c.Nodes[1].Addr}, l.awaitTakeover(ctx, c.Nodes[c.Masters])
	},
}

func (l *Lab) masterSilent(ctx context.Context, library clients.Name, o clients.Options) (Scene, error) {
	c, err := l.callersOfCluster(ctx, library, o)
	if err != nil {
		return Scene{}, err
	}
	l.after(ctx, beforeFault, func(ctx context.Context) error {
		if err := l.stop(c.Nodes[0]); err != nil {
			return err
		}
		return l.awaitTakeover(ctx, c.Nodes[c.Masters])
	})
	return Scene{Target: c.Nodes[1].Addr}, nil
}

// callersOfCluster starts a cluster and callers that read and write all over it.
func (l *Lab) callersOfCluster(ctx context.Context, library clients.Name, o clients.Options) (*fleet.Cluster, error) {
	c, err := l.cacheCluster(ctx)
	if err != nil {
		return nil, err
	}
	o.Addresses, o.Mode, o.Commands, o.Keys = c.Addrs(), "cluster", readsAndWrites(), documents
	return c, l.Client(ctx, clientSpec{Program: library, CPU: otherCPU(), Options: o})
}
