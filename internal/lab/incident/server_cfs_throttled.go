package incident

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// serverCFSThrottled is a server whose cgroup may use a fifth of a core, under a load that needs more.
var serverCFSThrottled = Incident{
	ID:    "server-cfs-throttled",
	Cause: "server-cfs-throttled",
	Title: "a server under load, in a cgroup with a CPU quota of 20 ms per 100 ms",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		g, err := fault.CPUCgroup(l, "throttled", 20*time.Millisecond)
		if err != nil {
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

// serverQuota gives the server a CPU quota.
var serverQuota = Fault{
	Name:  "server-cfs-throttled",
	Cause: "server-cfs-throttled",
	Needs: Needs{Quota: true},
	Draw:  func(r *rand.Rand) Strength { return Strength{"quota_ms": between(r, 2, 60)} },
	On: func(_ context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(context.Context) error { return st.Quota.SetQuota(0) })
		return st.Quota.SetQuota(s.millis("quota_ms"))
	},
}
