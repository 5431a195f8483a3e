package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// clientPause pauses all clients for 400 ms of every second.
var clientPause = Scenario{
	ID:    "client-pause-or-write-block",
	Cause: "client-pause-or-write-block",
	Title: "CLIENT PAUSE 400, once per second",
	Fixes: []string{"forbid-command"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		if err := pauses.On(ctx, l, &Stage{Server: s}, Strength{"every_ms": 1000, "pause_ms": 400}); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, nil
	},
}

// pauses lets the server pause its clients.
var pauses = Fault{
	Name:  "client-pause-or-write-block",
	Cause: "client-pause-or-write-block",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"every_ms": between(r, 300, 600), "pause_ms": between(r, 1, 250)}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
			_, err := st.Server.Do(ctx, "CLIENT", "PAUSE", itoa(max(1, s.int("pause_ms"))))
			return err
		})
		return nil
	},
}
