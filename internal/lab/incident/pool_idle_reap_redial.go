package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolIdleReapRedial: each client calls so rarely that its pool closes the idle connection in between. Every call pays
// for a new one, with 4 ms for each round trip of its handshake.
var poolIdleReapRedial = Incident{
	ID:    "pool-idle-reap-redial",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis clients with ConnMaxIdleTime 400 ms that call twice a second, 4 ms from their server",
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reapedPools(ctx, clients.GoRedis9, 3, 2, 400*time.Millisecond)
	},
}

// poolIdleReapRedialV8 calls less often: go-redis v8 counts idle time in whole seconds.
var poolIdleReapRedialV8 = Incident{
	ID:    "pool-idle-reap-redial-go-redis-v8",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis v8 clients with IdleTimeout 2 s that call every 3.3 s, 4 ms from their server",
	Args:  []string{"-a", labPassword},
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reapedPools(ctx, clients.GoRedis8, 4, 0.3, 2*time.Second)
	},
}

// reapedPools starts instances of an application. Each makes rate calls per second, with pauses longer than the idle
// limit of its pool.
func (l *Lab) reapedPools(ctx context.Context, program clients.Name, instances int, rate float64,
	idleLimit time.Duration,
) (Scene, error) {
	_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4*time.Millisecond)
	if err != nil {
		return Scene{}, err
	}
	for range instances {
		if err := l.Client(ctx, clientSpec{Program: program, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Commands: smallReads(), Keys: documents, Workers: 1,
			Rate: rate, IdleLimit: idleLimit,
		}}); err != nil {
			return Scene{}, err
		}
	}
	return Scene{Target: addr}, nil
}
