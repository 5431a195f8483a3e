package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// afterStart is when a fault comes that doctor is to see from before: it needs a second or two to start.
const afterStart = 4 * time.Second

// serverUnavailable kills a server during the watch: nothing listens at its port from then on.
var serverUnavailable = Scenario{
	ID:       "server-unavailable",
	Cause:    "server-unavailable",
	Title:    "kill -9 of the only server during the watch",
	Unproven: "the step starts the server by systemd or a container runtime, which the lab does not have",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		l.onceAfter(ctx, afterStart, s.Kill)
		return Scene{Target: s.Addr}, nil
	},
}

// loadedServer is a server with a small load.
func (l *Lab) loadedServer(ctx context.Context, config ...string) (*fleet.Instance, error) {
	s, err := l.Start(ctx, fleet.Spec{Config: config})
	if err != nil {
		return nil, err
	}
	l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 200, Command: traffic.Mixed(1000)})
	return s, nil
}
