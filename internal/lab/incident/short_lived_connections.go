package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// shortLivedConnections is a client without a pool: it connects, sends one command and closes.
var shortLivedConnections = Incident{
	ID:    "short-lived-connections",
	Cause: "short-lived-connections",
	Title: "2 000 calls per second, each on a connection of its own",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 20, Rate: 2000, PerCall: true, Command: traffic.Get(1000)})
		return Scene{Target: s.Addr}, nil
	},
}
