package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// staleTimeout is the server's idle limit in seconds, which it checks once a second.
const staleTimeout = "timeout 1"

// staleConnServerTimeout has a server that closes connections that are idle for a second, and pools that keep them
// longer: the call after a pause finds its connection closed, and pays for a new one.
var staleConnServerTimeout = Scenario{
	ID:    "stale-conn-server-timeout",
	Cause: "stale-conn-server-timeout",
	Title: "a server with timeout 1, and redis-py clients that call every 2.5 s, 4 ms from it",
	Fixes: []string{"no-idle-timeout"},
	Args:  []string{"-a", labPassword},
	Watch: 15 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.staleServer(ctx, clients.RedisPy)
	},
}

// staleConnServerTimeoutJedis has a library that does not check a connection before it uses it: the call fails.
var staleConnServerTimeoutJedis = Scenario{
	ID:    "stale-conn-server-timeout-jedis",
	Cause: "stale-conn-server-timeout",
	Title: "a server with timeout 1, and Jedis clients that call every 2.5 s, 4 ms from it",
	Fixes: []string{"no-idle-timeout"},
	Args:  []string{"-a", labPassword},
	Watch: 15 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.staleServer(ctx, clients.Jedis)
	},
}

// staleConnServerTimeoutV8 has a library that retries on a new connection.
var staleConnServerTimeoutV8 = Scenario{
	ID:    "stale-conn-server-timeout-go-redis",
	Cause: "stale-conn-server-timeout",
	Title: "a server with timeout 1, and go-redis v8 clients that call every 2.5 s, 4 ms from it",
	Fixes: []string{"no-idle-timeout"},
	Args:  []string{"-a", labPassword},
	Watch: 15 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.staleServer(ctx, clients.GoRedis8)
	},
}

func (l *Lab) staleServer(ctx context.Context, program clients.Name) (Scene, error) {
	_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword, Config: []string{staleTimeout}},
		4*time.Millisecond)
	if err != nil {
		return Scene{}, err
	}
	for range 4 { // instances of the application
		if err := l.Client(ctx, ClientSpec{Program: program, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Commands: smallReads(), Keys: Documents, Workers: 1,
			Rate: 0.4,
		}}); err != nil {
			return Scene{}, err
		}
	}
	return Scene{Target: addr}, nil
}
