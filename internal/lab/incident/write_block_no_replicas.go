package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// writeBlockNoReplicas refuses every write, because the replica that it requires does not exist.
var writeBlockNoReplicas = Incident{
	ID:    "write-block-no-replicas",
	Cause: "client-pause-or-write-block",
	Title: "min-replicas-to-write 1 on a server without a replica",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"min-replicas-to-write 1"}})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
