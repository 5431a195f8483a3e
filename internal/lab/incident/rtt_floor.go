package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// rttFloor puts 8 ms between the callers and an idle server, as a region far away, or a proxy that holds on to what it
// gets.
var rttFloor = Incident{
	ID:    "rtt-floor",
	Cause: "rtt-floor",
	Title: "a path that adds 8 ms to every reply",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		far, err := l.delayProxy(s.Addr, 8)
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: far, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000)})
		return Scene{Target: far}, nil
	},
}
