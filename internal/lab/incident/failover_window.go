package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
)

// failoverWindow kills a master in the middle of the watch: nobody serves its slots until the others have given it up
// and elected its replica.
var failoverWindow = Incident{
	ID:    "failover-window",
	Cause: "failover-window",
	Title: "kill -9 of a master of three; its replica is elected 4 s later, and go-redis calls all the time",
	Watch: 14 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterKilled(ctx, clients.GoRedis9, 2000, beforeFault)
	},
}

// failoverWindowJedis has the same seen by few threads that wait, each for its own call.
var failoverWindowJedis = Incident{
	ID:    "failover-window-jedis",
	Cause: "failover-window",
	Title: "kill -9 of a master of three under a few calls per second of Jedis",
	Watch: 14 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.masterKilled(ctx, clients.Jedis, 60, beforeFault)
	},
}

// failoverWindowBegun is a master that is gone when doctor comes, so that it cannot be watched; its replica tells of
// it.
var failoverWindowBegun = Incident{
	ID:    "failover-window-begun",
	Cause: "failover-window",
	Title: "kill -9 of a master of three under ioredis, just before doctor looks",
	Watch: 10 * time.Second,
	Make:  func(ctx context.Context, l *Lab) (Scene, error) { return l.masterKilled(ctx, clients.IORedis, 500, 0) },
}

// beforeFault is how long callers are well first: doctor needs a second or two to begin.
const beforeFault = 5 * time.Second

func (l *Lab) masterKilled(ctx context.Context, library clients.Name, rate float64, wait time.Duration) (Scene, error) {
	c, err := l.callersOfCluster(ctx, library, clients.Options{Workers: 20, Rate: rate, Random: true})
	if err != nil {
		return Scene{}, err
	}
	l.after(ctx, wait, func(ctx context.Context) error {
		if err := c.Nodes[0].Kill(ctx); err != nil {
			return err
		}
		return l.awaitTakeover(ctx, c.Nodes[c.Masters])
	})
	return Scene{Target: c.Nodes[1].Addr}, nil
}
