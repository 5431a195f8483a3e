package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// writeBlockNoReplicas refuses every write, because the replica that it requires does not exist.
var writeBlockNoReplicas = Scenario{
	ID:    "write-block-no-replicas",
	Cause: "client-pause-or-write-block",
	Title: "min-replicas-to-write 1 on a server without a replica",
	Fixes: []string{"write-without-replicas"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"min-replicas-to-write 1"}})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// writeBlocks let the server refuse writes for a while, again and again: it has fewer replicas than it requires.
var writeBlocks = Fault{
	Name:  "write-block-no-replicas",
	Cause: "client-pause-or-write-block",
	Also:  []string{"calls-refused"}, // with NOREPLICAS
	Needs: Needs{Topologies: oneServer, Callers: writers},
	Draw:  drawPulses,
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.pulses(ctx, st, s, "min-replicas-to-write", "9", "0")
		return nil
	},
}

func drawPulses(r *rand.Rand) Strength {
	return Strength{"every_ms": between(r, 300, 600), "refused_ms": between(r, 1, 250)}
}

// pulses set a parameter of the server for a part of each period.
func (l *Lab) pulses(ctx context.Context, st *Stage, s Strength, parameter, bad, good string) {
	set := func(ctx context.Context, value string) error {
		_, err := st.Server.Do(ctx, "CONFIG", "SET", parameter, value)
		return err
	}
	l.Defer(func(ctx context.Context) error { return set(ctx, good) })
	l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
		if err := set(ctx, bad); err != nil {
			return err
		}
		pause(ctx, s.millis("refused_ms"))
		return set(context.WithoutCancel(ctx), good)
	})
}
