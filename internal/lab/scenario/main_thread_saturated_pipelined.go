package scenario

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// mainThreadSaturatedPipelined keeps thousands of cheap commands queued in pipelines.
var mainThreadSaturatedPipelined = Scenario{
	ID:    "main-thread-saturated-pipelined",
	Cause: "main-thread-saturated",
	Title: "50 callers with pipelines of 64 cheap commands, without pauses",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 50, Pipeline: 64, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
