package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// slowCommand runs KEYS every 300 ms, among small commands.
var slowCommand = Scenario{
	ID:    "slow-command",
	Cause: "slow-command",
	Title: "KEYS every 300 ms, on a keyspace of a million keys",
	Fixes: []string{"in-steps", "forbid-command"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillKeys(ctx, s, 1_000_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		if l.Fixed("in-steps") {
			l.Every(ctx, 300*time.Millisecond, func(ctx context.Context) error {
				return s.Scan(ctx, 2*time.Millisecond, []string{"SCAN"}, "MATCH", "nothing:*", "COUNT", "1000")
			})
			return Scene{Target: s.Addr}, nil
		}
		l.Every(ctx, 300*time.Millisecond, func(ctx context.Context) error {
			_, err := s.Do(ctx, "KEYS", "nothing:*")
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// keysCommands runs KEYS.
var keysCommands = Fault{
	Name:    "slow-command",
	Cause:   "slow-command",
	Needs:   Needs{Topologies: oneServer},
	Calls:   true,
	Culprit: "report",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"keys": between(r, 500, 1_000_000), "per_second": between(r, 2, 8)}
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillKeys(ctx, st.Server, s.int("keys"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Load(ctx, st.load("report", 1, s["per_second"], traffic.Always("KEYS", "nothing:*")))
		return nil
	},
}

// load is a load on the server itself, from other callers with a name.
func (st *Stage) load(name string, conns int, rate float64, command func(*rand.Rand, int) []string) traffic.Spec {
	return traffic.Spec{Addr: st.Server.Addr, TLS: st.TLS, Name: name, Conns: conns, Rate: rate, Command: command}
}
