package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// introspectionLoad asks INFO and CLIENT LIST as fast as replies come, with 300 clients connected.
var introspectionLoad = Incident{
	ID:    "introspection-load",
	Cause: "introspection-load",
	Title: "INFO all and CLIENT LIST on 40 connections without a pause, 300 clients connected",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 300, Rate: 1000, Command: traffic.Mixed(10_000)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 20, Command: traffic.Always("INFO", "all")})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 20, Command: traffic.Always("CLIENT", "LIST")})
		return Scene{Target: s.Addr}, nil
	},
}

// introspectionMonitor repeats a pipelined load to eight MONITOR clients.
var introspectionMonitor = Incident{
	ID:    "introspection-load-monitor",
	Cause: "introspection-load",
	Title: "eight MONITOR clients beside a pipelined load",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		for range 8 {
			if err := l.monitor(ctx, s.Addr); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 30, Pipeline: 50, Rate: 100_000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
