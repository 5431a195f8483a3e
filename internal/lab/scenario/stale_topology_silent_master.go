package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
)

// staleTopologySilentMaster stops a master for good. Its replica takes over, but by default Lettuce 6 asks for the map
// only when it starts, and a frozen master sends no MOVED: callers keep waiting for it.
var staleTopologySilentMaster = Scenario{
	ID:    "stale-topology-silent-master",
	Cause: "stale-topology-silent-master",
	Title: "SIGSTOP of one of three masters, under Lettuce 6 without topology refresh",
	Fixes: []string{"continue-process"},
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterSilent(ctx, clients.Lettuce6, clients.Options{Workers: 20, Rate: 300, Random: true})
	},
}

// staleTopologyGoRedis has timeouts of 5 s, and a library that learns of the new master only from MOVED or its refresh
// after a minute.
var staleTopologyGoRedis = Scenario{
	ID:    "stale-topology-silent-master-go-redis",
	Cause: "stale-topology-silent-master",
	Title: "SIGSTOP of one of three masters, under go-redis, which refreshes the map after a minute",
	Fixes: []string{"continue-process"},
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterSilent(ctx, clients.GoRedis9, clients.Options{Workers: 20, Rate: 300, Random: true})
	},
}

// staleTopologyLong has a failover that is over when doctor starts, and callers that have not noticed it.
var staleTopologyLong = Scenario{
	ID:    "stale-topology-silent-master-long-since",
	Cause: "stale-topology-silent-master",
	Title: "SIGSTOP of one of three masters and its failover before doctor starts, under Lettuce 6",
	Fixes: []string{"continue-process"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.callersOfCluster(ctx, clients.Lettuce6, clients.Options{Workers: 20, Rate: 300, Random: true})
		if err != nil {
			return Scene{}, err
		}
		if err := l.freeze(c.Nodes[0]); err != nil {
			return Scene{}, err
		}
		return Scene{Target: c.Nodes[1].Addr}, l.awaitFailover(ctx, c.Nodes[c.Masters])
	},
}

func (l *Lab) masterSilent(ctx context.Context, library clients.Name, o clients.Options) (Scene, error) {
	c, err := l.callersOfCluster(ctx, library, o)
	if err != nil {
		return Scene{}, err
	}
	l.onceAfter(ctx, beforeFault, func(ctx context.Context) error {
		if err := l.freeze(c.Nodes[0]); err != nil {
			return err
		}
		return l.awaitFailover(ctx, c.Nodes[c.Masters])
	})
	return Scene{Target: c.Nodes[1].Addr}, nil
}
