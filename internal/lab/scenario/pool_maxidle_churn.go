package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// poolMaxIdleChurn has 20 callers and keeps one idle connection: the pool closes the others when they are returned, and
// dials again for the next call.
var poolMaxIdleChurn = Scenario{
	ID:    "pool-maxidle-churn",
	Cause: "pool-maxidle-churn",
	Title: "a redigo pool with MaxIdle 1 for 20 callers, 4 ms from its server",
	Fixes: []string{"larger-idle-limit"},
	Args:  []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		l.StepsOf(string(clients.Redigo))
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: clients.Redigo, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: Documents,
			Workers: 20, Rate: 500, Random: true, MaxIdle: l.FixedNumber("larger-idle-limit", 1),
		}})
	},
}

// smallIdlePool keeps fewer idle connections than there are callers.
var smallIdlePool = Fault{
	Name:   "pool-maxidle-churn",
	Cause:  "pool-maxidle-churn",
	Needs:  Needs{Topologies: []Topology{Standalone, Replicated, Proxied}, Callers: []clients.Name{clients.Redigo}},
	Draw:   func(r *rand.Rand) Strength { return Strength{"max_idle": float64(1 + r.IntN(3))} },
	Caller: func(o *clients.Options, s Strength) { o.MaxIdle = s.int("max_idle") },
}
