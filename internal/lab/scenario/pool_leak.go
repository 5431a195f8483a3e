package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolLeak does not return a connection now and then: the pool has fewer and fewer, and dials new ones while those that
// were leaked do nothing.
var poolLeak = Scenario{
	ID:    "pool-leak",
	Cause: "pool-leak",
	Title: "a redigo pool of 500, to which one call of 15 does not return its connection, 4 ms from its server",
	Fixes: []string{"return-connections"},
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.leak(ctx, clients.Redigo)
	},
}

// poolLeakGoRedis leaks connections of another library's pool.
var poolLeakGoRedis = Scenario{
	ID:    "pool-leak-go-redis",
	Cause: "pool-leak",
	Title: "a go-redis pool of 500, to which one call of 15 does not return its Conn(), 4 ms from its server",
	Fixes: []string{"return-connections"},
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.leak(ctx, clients.GoRedis9)
	},
}

func (l *Lab) leak(ctx context.Context, program clients.Name) (Scene, error) {
	_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4*time.Millisecond)
	if err != nil {
		return Scene{}, err
	}
	l.StepsOf(string(program))
	leakEvery := 15
	if l.Fixed("return-connections") {
		leakEvery = 0
	}
	return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: program, Options: clients.Options{
		Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: Documents,
		Workers: 10, Rate: 120, Random: true, PoolSize: 500, MaxIdle: 500, LeakEvery: leakEvery,
	}})
}
