package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolLifetimeRedial: connections that are in use reach the age at which the pool closes them. The next call pays for a
// new one, with 4 ms for each round trip of its handshakes.
var poolLifetimeRedial = Scenario{
	ID:    "pool-lifetime-redial",
	Cause: "pool-lifetime-redial",
	Title: "redigo clients with MaxConnLifetime 1 s, 4 ms from their server",
	Fixes: []string{"longer-lifetime"},
	Args:  []string{"-a", labPassword},
	Watch: 15 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		l.StepsOf(string(clients.Redigo))
		lifetime := time.Second
		if l.Fixed("longer-lifetime") {
			lifetime = 0
		}
		const instances = 4
		for range instances {
			if err := l.Client(ctx, ClientSpec{Program: clients.Redigo, Options: clients.Options{
				Addresses: []string{addr}, Password: labPassword, Commands: smallReads(), Keys: Documents,
				Workers: 1, Rate: 10, Random: true, MaxIdle: 2, ConnLifetime: lifetime, Name: "shop",
			}}); err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: addr}, nil
	},
}
