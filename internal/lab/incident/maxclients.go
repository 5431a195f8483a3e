package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
)

// maxClients leaves no room for anybody: idle connections hold every place, and others keep asking.
var maxClients = Incident{
	ID:    "maxclients",
	Cause: "maxclients",
	Title: "maxclients 50, all taken by idle connections, others are refused",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"maxclients 50"}})
		if err != nil {
			return Scene{}, err
		}
		if err := l.hold(ctx, s.Addr, 50); err != nil {
			return Scene{}, err
		}
		l.storm(ctx, s.Addr, 2, 100*time.Millisecond)
		return Scene{Target: s.Addr}, nil
	},
}
