package scenario

import (
	"context"

	"slowpath/internal/lab/fleet"
)

// healthyIdle is a server without clients.
var healthyIdle = Scenario{
	ID:    "healthy-idle",
	Cause: HealthyCause,
	Title: "a server without a load",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, nil
	},
}
