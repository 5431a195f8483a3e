package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
)

// failoverWindow kills a master while doctor watches: nobody serves its slots until the other masters call it failed
// and elect its replica.
var failoverWindow = Scenario{
	ID:    "failover-window",
	Cause: "failover-window",
	Title: "kill -9 of one of three masters, whose replica is elected 4 s later, under go-redis",
	Fixes: []string{"fail-over-first"},
	Watch: 14 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterKilled(ctx, clients.GoRedis9, 2000, beforeFault)
	},
}

// failoverWindowJedis has few threads, each of which waits for its own call.
var failoverWindowJedis = Scenario{
	ID:    "failover-window-jedis",
	Cause: "failover-window",
	Title: "kill -9 of one of three masters, under 60 calls per second of Jedis",
	Fixes: []string{"fail-over-first"},
	Watch: 14 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterKilled(ctx, clients.Jedis, 60, beforeFault)
	},
}

// failoverWindowBegun kills the master before doctor starts, so that doctor cannot watch it. Its replica knows of the
// failover.
var failoverWindowBegun = Scenario{
	ID:    "failover-window-begun",
	Cause: "failover-window",
	Title: "kill -9 of one of three masters just before doctor starts, under ioredis",
	Fixes: []string{"fail-over-first"},
	Watch: 10 * time.Second,
	Make:  func(ctx context.Context, l *Lab) (Scene, error) { return l.masterKilled(ctx, clients.IORedis, 500, 0) },
}

func (l *Lab) masterKilled(ctx context.Context, library clients.Name, rate float64, wait time.Duration) (Scene, error) {
	c, err := l.callersOfCluster(ctx, library, clients.Options{Workers: 20, Rate: rate, Random: true})
	if err != nil {
		return Scene{}, err
	}
	planned := l.Fixed("fail-over-first")
	l.onceAfter(ctx, wait, func(ctx context.Context) error {
		if planned {
			return l.restartReplaced(ctx, c)
		}
		if err := c.Nodes[0].Kill(ctx); err != nil {
			return err
		}
		return l.awaitFailover(ctx, c.Nodes[c.Masters])
	})
	return Scene{Target: c.Nodes[1].Addr}, nil
}
