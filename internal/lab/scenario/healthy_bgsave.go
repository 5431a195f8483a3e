package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// healthyBGSave saves a small keyspace in the background: the fork takes a millisecond, and the disk is not busy.
var healthyBGSave = Scenario{
	ID:    "healthy-bgsave",
	Cause: HealthyCause,
	Title: "BGSAVE of 20 000 keys every three seconds, 1 000 commands per second",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillKeys(ctx, s, 20_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		l.Every(ctx, 3*time.Second, func(ctx context.Context) error {
			if _, err := s.Do(ctx, "BGSAVE"); err != nil && !strings.Contains(err.Error(), "in progress") {
				return fmt.Errorf("BGSAVE: %w", err)
			}
			return nil
		})
		return Scene{Target: s.Addr}, nil
	},
}
