package incident

import (
	"context"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolLeak forgets now and then to give a connection back: the pool has fewer and fewer, and dials others while those
// that are out do nothing.
var poolLeak = Incident{
	ID:    "pool-leak",
	Cause: "pool-leak",
	Title: "a redigo pool of 500 to which one call in fifteen does not return its connection, 8 ms from its server",
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.leak(ctx, clients.Redigo)
	},
}

// poolLeakGoRedis takes single connections of another library's pool.
var poolLeakGoRedis = Incident{
	ID:    "pool-leak-go-redis",
	Cause: "pool-leak",
	Title: "a go-redis pool of 500 to which client.Conn() is not returned, once in fifteen calls, 8 ms from its server",
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.leak(ctx, clients.GoRedis9)
	},
}

func (l *Lab) leak(ctx context.Context, program clients.Name) (Scene, error) {
	_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 8)
	if err != nil {
		return Scene{}, err
	}
	return Scene{Target: addr}, l.Client(ctx, clientSpec{Program: program, Options: clients.Options{
		Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: documents,
		Workers: 10, Rate: 120, Random: true, PoolSize: 500, MaxIdle: 500, LeakEvery: 15,
	}})
}
