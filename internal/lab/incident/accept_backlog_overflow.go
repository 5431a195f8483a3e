package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
)

// acceptBacklogOverflow sends bursts of new connections to a listener whose accept queue has room for four.
var acceptBacklogOverflow = Incident{
	ID:    "accept-backlog-overflow",
	Cause: "accept-backlog-overflow",
	Title: "tcp-backlog 4, and bursts of 100 new connections",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"tcp-backlog 4"}})
		if err != nil {
			return Scene{}, err
		}
		l.connectBursts(ctx, s.Addr, 100, 50*time.Millisecond)
		return Scene{Target: s.Addr}, nil
	},
}
