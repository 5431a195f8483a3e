package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolOversized has a connection for each of its hundreds of callers, which call as fast as they can. Nearly all of the
// calls queue at the server, whose throughput would be the same with a tenth of the connections.
var poolOversized = Scenario{
	ID:       "pool-oversized",
	Cause:    "pool-oversized",
	Title:    "a go-redis pool of 600 connections, whose callers call as fast as they can",
	Unproven: "its callers call as fast as they can, and keep the server saturated with any pool",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.crowdedPool(ctx, clients.GoRedis9, 600)
	},
}

// poolOversizedRedigo is a smaller pool of another library.
var poolOversizedRedigo = Scenario{
	ID:    "pool-oversized-redigo",
	Cause: "pool-oversized",
	Title: "a redigo pool of 400 connections, whose callers call as fast as they can",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.crowdedPool(ctx, clients.Redigo, 400)
	},
}

// seenBits is the size of a bitmap that takes the server a few hundred microseconds to count. That is far more than the
// client needs for its call, and limits the calls, all of which are slow, to a few thousand per second.
const seenBits = 16 << 20

func (l *Lab) crowdedPool(ctx context.Context, program clients.Name, conns int) (Scene, error) {
	s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
	if err != nil {
		return Scene{}, err
	}
	if _, err := s.Do(ctx, "SETBIT", "seen:0", itoa(seenBits-1), "1"); err != nil {
		return Scene{}, err
	}
	return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{Program: program, CPU: otherCPU(), Options: clients.Options{
		Addresses: []string{s.Addr}, Commands: []clients.Command{{Args: []string{"BITCOUNT", "seen:0"}}},
		Workers: conns, PoolSize: conns, MaxIdle: conns,
		PoolTimeout: 10 * time.Second,
	}})
}
