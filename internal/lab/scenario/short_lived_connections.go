package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// shortLivedConnections is a client without a pool: it connects, sends one command and closes.
var shortLivedConnections = Scenario{
	ID:    "short-lived-connections",
	Cause: "short-lived-connections",
	Title: "2 000 calls per second, each on a connection of its own",
	Fixes: []string{"one-client"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{
			Addr: s.Addr, Conns: 20, Rate: 2000, PerCall: !l.Fixed("one-client"), Command: traffic.Get(1000),
		})
		return Scene{Target: s.Addr}, nil
	},
}

// clientPerCall makes a new client for every few calls.
var clientPerCall = Fault{
	Name:  "short-lived-connections",
	Cause: "short-lived-connections",
	Also:  []string{"handshake-extra-rtts"},
	Needs: Needs{
		Topologies: []Topology{Standalone, Replicated, Namespaced}, Callers: []clients.Name{clients.GoRedis9},
	},
	Draw:   func(r *rand.Rand) Strength { return Strength{"calls_per_client": float64(1 + r.IntN(4))} },
	Caller: func(o *clients.Options, s Strength) { o.CallsPerClient = s.int("calls_per_client") },
}
