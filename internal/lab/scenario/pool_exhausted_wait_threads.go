package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolExhaustedWaitThreads has threads that sleep until another one gives a connection back: the kernel sees them wait.
var poolExhaustedWaitThreads = Scenario{
	ID:    "pool-exhausted-wait-threads",
	Cause: "pool-exhausted-wait",
	Title: "a Jedis client with maxTotal 3 for 30 threads, 2 ms from its server",
	Make:  jedisPool(30, 3),
}

// jedisPool has threads that make one call after the other with a pool of connections, 2 ms from their server.
func jedisPool(threads, conns int) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{}, 2*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: clients.Jedis, Options: clients.Options{
			Addresses: []string{addr}, Commands: smallReads(), Keys: Documents, Workers: threads, PoolSize: conns,
		}})
	}
}
