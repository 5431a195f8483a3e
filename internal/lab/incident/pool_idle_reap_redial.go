package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolIdleReapRedial is incident 001 in small: each client calls less often than its pool keeps an idle connection, so that every call
// pays for a new one, 4 ms for each round trip of its handshake.
var poolIdleReapRedial = Incident{
	ID:    "pool-idle-reap-redial",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis clients with ConnMaxIdleTime 400 ms that call twice a second, 4 ms from their server",
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4)
		if err != nil {
			return Scene{}, err
		}
		for range 3 { // instances of the application
			if err := l.Client(ctx, clientSpec{Program: clients.GoRedis9, Options: clients.Options{
				Addresses: []string{addr}, Password: labPassword, Commands: smallReads(), Keys: documents, Workers: 1, Rate: 2,
				IdleLimit: 400 * time.Millisecond}}); err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: addr}, nil
	},
}

// poolIdleReapRedialV8 calls less often: go-redis v8 counts idle time in whole seconds.
var poolIdleReapRedialV8 = Incident{
	ID:    "pool-idle-reap-redial-go-redis-v8",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis v8 clients with IdleTimeout 2 s that call every 3 s and more, 4 ms from their server",
	Args:  []string{"-a", labPassword},
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4)
		if err != nil {
			return Scene{}, err
		}
		for range 4 {
			if err := l.Client(ctx, clientSpec{Program: clients.GoRedis8, Options: clients.Options{
				Addresses: []string{addr}, Password: labPassword, Commands: smallReads(), Keys: documents, Workers: 1, Rate: 0.3,
				IdleLimit: 2 * time.Second}}); err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: addr}, nil
	},
}
