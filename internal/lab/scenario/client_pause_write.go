package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// clientPauseWrite pauses writes only. Reads, and so the probe, are not affected.
var clientPauseWrite = Scenario{
	ID:    "client-pause-write",
	Cause: "client-pause-or-write-block",
	Title: "CLIENT PAUSE 700 WRITE, once per second",
	Fixes: []string{"forbid-command"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if strings.HasPrefix(string(l.Server), "redis-5") || strings.HasPrefix(string(l.Server), "redis-6.0") {
			return Scene{}, fmt.Errorf("%w: CLIENT PAUSE … WRITE needs 6.2", fault.ErrCannot)
		}
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		l.Every(ctx, time.Second, func(ctx context.Context) error {
			_, err := s.Do(ctx, "CLIENT", "PAUSE", "700", "WRITE")
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}
