package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// clientPause pauses all clients for 400 ms of every second.
var clientPause = Incident{
	ID:    "client-pause-or-write-block",
	Cause: "client-pause-or-write-block",
	Title: "CLIENT PAUSE 400, once per second",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		l.Every(ctx, time.Second, func(ctx context.Context) error {
			_, err := s.Do(ctx, "CLIENT", "PAUSE", "400")
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}
