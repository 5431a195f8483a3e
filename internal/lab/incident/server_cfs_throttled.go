package incident

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// serverCFSThrottled is incident 004: a server whose cgroup may use a fifth of a core, under a load that wants more.
var serverCFSThrottled = Incident{
	ID:    "server-cfs-throttled",
	Cause: "server-cfs-throttled",
	Title: "redis-server in a cgroup with a quota of 20 ms per 100 ms, under load",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		g, err := l.CPUCgroup(ctx, "throttled")
		if err != nil {
			return Scene{}, err
		}
		if err := g.Quota(20_000, 100_000); err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{CgroupProcs: []string{g.Procs()}})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Command: traffic.Get(1000)})
		return Scene{Target: s.Addr}, nil
	},
}
