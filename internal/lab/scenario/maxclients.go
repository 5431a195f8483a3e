package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fleet"
)

// maxClients fills maxclients with idle connections, while others keep connecting.
var maxClients = Scenario{
	ID:    "maxclients",
	Cause: "maxclients",
	Title: "maxclients 50, reached by idle connections, so that others are refused",
	Fixes: []string{"more-clients"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"maxclients 50"}})
		if err != nil {
			return Scene{}, err
		}
		if err := l.holdIdle(ctx, s.Addr, 50); err != nil {
			return Scene{}, err
		}
		l.connectBursts(ctx, s.Addr, 2, 100*time.Millisecond)
		return Scene{Target: s.Addr}, nil
	},
}

// idleConnections fill a server, so that new ones are refused.
var idleConnections = Fault{
	Name:   "maxclients",
	Cause:  "maxclients",
	Needs:  Needs{Topologies: oneServer, With: "short-lived-connections"},
	Draw:   func(r *rand.Rand) Strength { return Strength{"idle": between(r, 60, 240)} },
	Config: func(*Lab, Strength) []string { return []string{"maxclients 160"} },
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		return l.holdIdle(ctx, st.Server.Addr, s.int("idle"))
	},
}
