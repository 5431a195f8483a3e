package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// rttFloor adds 8 ms to the path to an idle server, as when it is in another region or behind a slow proxy.
var rttFloor = Incident{
	ID:    "rtt-floor",
	Cause: "rtt-floor",
	Title: "a path that delays every reply by 8 ms",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		far, err := (&fault.Proxy{Server: s.Addr, ReplyDelay: 8 * time.Millisecond}).Start(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: far, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000)})
		return Scene{Target: far}, nil
	},
}
