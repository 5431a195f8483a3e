package scenario

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// healthyMixed is a busy server, far from saturation.
var healthyMixed = Scenario{
	ID:    "healthy-mixed",
	Cause: HealthyCause,
	Title: "20 000 mixed commands per second on 20 connections",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 20, Rate: 20_000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
