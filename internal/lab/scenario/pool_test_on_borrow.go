package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolTestOnBorrow sends PING on each connection before it is used: every call takes two round trips.
var poolTestOnBorrow = Scenario{
	ID:    "pool-test-on-borrow",
	Cause: "pool-test-on-borrow",
	Title: "a redigo pool whose TestOnBorrow sends PING before each use, 3 ms from its server",
	Fixes: []string{"test-idle-only"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{}, 3*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		l.StepsOf(string(clients.Redigo))
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: clients.Redigo, Options: clients.Options{
			Addresses: []string{addr}, Commands: smallReads(), Keys: Documents, Workers: 10, Rate: 200, MaxIdle: 10,
			// all connections were used within the last minute, so the test that the step names sends nothing
			TestOnBorrow: !l.Fixed("test-idle-only"),
		}})
	},
}
