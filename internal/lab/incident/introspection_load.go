package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// introspectionLoad is an exporter that asks too much: CLIENT LIST with 300 clients connected, and the exact size of a
// big hash.
var introspectionLoad = Incident{
	ID:    "introspection-load",
	Cause: "introspection-load",
	Title: "MEMORY USAGE key SAMPLES 0 of a big hash, CLIENT LIST and INFO from a greedy exporter",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillHash(ctx, s, "big:hash", 400_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 300, Rate: 1000, Command: traffic.Mixed(10_000)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 2, Rate: 5, Command: traffic.Always("MEMORY", "USAGE", "big:hash",
			"SAMPLES", "0")})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 2, Rate: 50, Command: traffic.Always("CLIENT", "LIST")})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 2, Rate: 100, Command: traffic.Always("INFO", "all")})
		return Scene{Target: s.Addr}, nil
	},
}

// introspectionMonitor repeats a pipelined load to three MONITOR clients.
var introspectionMonitor = Incident{
	ID:    "introspection-load-monitor",
	Cause: "introspection-load",
	Title: "three MONITOR clients beside a pipelined load",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		for range 3 {
			if err := l.monitor(ctx, s.Addr); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 30, Pipeline: 100, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
