package scenario

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// healthyPipelined sends many commands in few packets, as it should be.
var healthyPipelined = Scenario{
	ID:    "healthy-pipelined",
	Cause: HealthyCause,
	Title: "60 000 commands per second in pipelines of 20",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Pipeline: 20, Rate: 60_000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
