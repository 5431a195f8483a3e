package scenario

import (
	"context"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
)

// acceptBacklogOverflow sends bursts of new connections to a listener whose accept queue has room for four.
var acceptBacklogOverflow = Scenario{
	ID:    "accept-backlog-overflow",
	Cause: "accept-backlog-overflow",
	Title: "tcp-backlog 4, and bursts of 100 new connections",
	Fixes: []string{"larger-backlog", "keep-connections"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"tcp-backlog " + itoa(l.FixedNumber("larger-backlog", 4))}})
		if err != nil {
			return Scene{}, err
		}
		if l.Fixed("keep-connections") {
			for range 100 {
				err := l.startCaller(ctx, net.Dialer{}, s.Addr, 50*time.Millisecond, func(c *caller) error {
					return c.call("PING")
				})
				if err != nil {
					return Scene{}, err
				}
			}
			return Scene{Target: s.Addr}, nil
		}
		l.connectBursts(ctx, s.Addr, 100, 50*time.Millisecond)
		return Scene{Target: s.Addr}, nil
	},
}
