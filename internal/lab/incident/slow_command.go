package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// slowCommand runs KEYS on a million keys every 300 ms beside an everyday load.
var slowCommand = Incident{
	ID:    "slow-command",
	Cause: "slow-command",
	Title: "KEYS on a keyspace of a million keys",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fill(ctx, s, 1_000_000); err != nil {
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

// fill makes n small keys on the server itself, in steps short enough not to trip its script limit.
func fill(ctx context.Context, s *fleet.Instance, n int) error {
	const step = 50_000
	for from := 0; from < n; from += step {
		if _, err := s.Do(ctx, "EVAL", "for i=ARGV[1],ARGV[1]+ARGV[2]-1 do redis.call('SET','fill:'..i,'v') end", "0",
			itoa(from), itoa(min(step, n-from))); err != nil {
			return err
		}
	}
	return nil
}
