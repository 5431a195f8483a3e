package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolExhaustedWait has three connections for 30 callers. Each is in use all the time, because of a round trip of 2 ms
// to a server that is nearly idle, and calls wait inside the client before they are sent.
var poolExhaustedWait = Scenario{
	ID:    "pool-exhausted-wait",
	Cause: "pool-exhausted-wait",
	Title: "a go-redis client with PoolSize 3 for 30 callers, 2 ms from its server",
	Fixes: []string{"larger-pool"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{}, 2*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		l.StepsOf(string(clients.GoRedis9))
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: []string{addr}, Commands: smallReads(), Keys: Documents, Workers: 30,
			PoolSize: l.FixedNumber("larger-pool", 3), Rate: 1500,
			Random: true,
		}})
	},
}

// smallPool has fewer connections than callers.
var smallPool = Fault{
	Name:  "pool-exhausted-wait",
	Cause: "pool-exhausted-wait",
	Needs: Needs{Callers: []clients.Name{
		clients.GoRedis8, clients.GoRedis9, clients.Redigo, clients.Jedis, clients.NodeRedis,
	}},
	Draw:   func(r *rand.Rand) Strength { return Strength{"pool_size": float64(1 + r.IntN(4))} },
	Caller: func(o *clients.Options, s Strength) { o.PoolSize = min(o.PoolSize, s.int("pool_size")) },
}
