package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// slowCommand runs KEYS every 300 ms, among small commands.
var slowCommand = Incident{
	ID:    "slow-command",
	Cause: "slow-command",
	Title: "KEYS every 300 ms, on a keyspace of a million keys",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillKeys(ctx, s, 1_000_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		l.Every(ctx, 300*time.Millisecond, func(ctx context.Context) error {
			_, err := s.Do(ctx, "KEYS", "nothing:*")
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}
