package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolIdleReapRedial: each client calls so rarely that its pool closes the idle connection in between. Every call pays
// for a new one, with 4 ms for each round trip of its handshake.
var poolIdleReapRedial = Scenario{
	ID:    "pool-idle-reap-redial",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis clients with ConnMaxIdleTime 400 ms that call twice a second, 4 ms from their server",
	Fixes: []string{"keep-idle"},
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reapedPools(ctx, reapedPools{
			program: clients.GoRedis9, instances: 3, rate: 2, idleLimit: 400 * time.Millisecond,
			distance: 4 * time.Millisecond,
		})
	},
}

// poolIdleReapRedialV8 calls less often: go-redis v8 counts idle time in whole seconds.
var poolIdleReapRedialV8 = Scenario{
	ID:    "pool-idle-reap-redial-go-redis-v8",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis v8 clients with IdleTimeout 2 s that call every 3.3 s, 4 ms from their server",
	Fixes: []string{"keep-idle"},
	Args:  []string{"-a", labPassword},
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reapedPools(ctx, reapedPools{
			program: clients.GoRedis8, instances: 4, rate: 0.3, idleLimit: 2 * time.Second,
			distance: 4 * time.Millisecond,
		})
	},
}

// poolIdleReapRedialFleet: each process does it once in ten seconds. Only all of them together show a pattern.
var poolIdleReapRedialFleet = Scenario{
	ID:    "pool-idle-reap-redial-fleet",
	Cause: "pool-idle-reap-redial",
	Title: "Ten processes of go-redis v8, 8 ms from their server, 1.1 calls/s each: one in ten dials again",
	Args:  []string{"-a", labPassword},
	Watch: 15 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reapedPools(ctx, reapedPools{
			program: clients.GoRedis8, instances: 10, rate: 1.1, random: true, idleLimit: 2 * time.Second,
			distance: 8 * time.Millisecond,
		})
	},
}

// poolIdleReapRedialTLS closes each connection with an alert of TLS, which nobody answers: no call is given up.
var poolIdleReapRedialTLS = Scenario{
	ID:    "pool-idle-reap-redial-tls",
	Cause: "pool-idle-reap-redial",
	Title: "go-redis v8 clients under TLS with IdleTimeout 2 s that call every 3.3 s, 4 ms from their server",
	Fixes: []string{"keep-idle"},
	Args:  []string{"--insecure", "-a", labPassword},
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		scene, err := l.reapedPools(ctx, reapedPools{
			program: clients.GoRedis8, instances: 4, rate: 0.3, idleLimit: 2 * time.Second,
			distance: 4 * time.Millisecond, tls: true,
		})
		scene.Target = "rediss://" + scene.Target
		return scene, err
	},
}

// reapedPools are processes whose pools close connections that were idle for idleLimit.
type reapedPools struct {
	program   clients.Name
	instances int
	rate      float64 // calls per second of each
	random    bool    // they come at random, and only some after more than idleLimit
	idleLimit time.Duration
	distance  time.Duration
	tls       bool
}

func (l *Lab) reapedPools(ctx context.Context, p reapedPools) (Scene, error) {
	_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword, TLS: p.tls}, p.distance)
	if err != nil {
		return Scene{}, err
	}
	l.StepsOf(string(p.program))
	minIdle := l.FixedNumber("keep-idle", 0)
	if l.Fixed("keep-idle") {
		p.idleLimit = -1 // as the step says: never
	}
	for range p.instances {
		if err := l.Client(ctx, ClientSpec{Program: p.program, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Commands: smallReads(), Keys: Documents, Workers: 1,
			Rate: p.rate, Random: p.random, MinIdle: minIdle, IdleLimit: p.idleLimit, TLS: p.tls,
		}}); err != nil {
			return Scene{}, err
		}
	}
	return Scene{Target: addr}, nil
}

// idleLimit closes connections in the gaps between calls.
var idleLimit = Fault{
	Name:  "pool-idle-reap-redial",
	Cause: "pool-idle-reap-redial",
	Needs: Needs{
		Topologies: []Topology{Standalone, Replicated, Proxied}, Callers: []clients.Name{
			clients.GoRedis9,
			clients.Redigo,
		},
	},
	Draw:   func(r *rand.Rand) Strength { return Strength{"idle_limit_ms": between(r, 20, 200)} },
	Base:   func(o *clients.Options, _ Strength) { o.Workers, o.Rate, o.Random = 1, 10, false },
	Caller: func(o *clients.Options, s Strength) { o.IdleLimit = s.millis("idle_limit_ms") },
}
