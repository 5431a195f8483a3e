package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// serverCFSThrottled is a server whose cgroup may use a fifth of a core, under a load that needs more.
var serverCFSThrottled = Scenario{
	ID:    "server-cfs-throttled",
	Cause: "server-cfs-throttled",
	Title: "a server under load, in a cgroup with a CPU quota of 20 ms per 100 ms",
	Fixes: []string{"remove-cpu-limit"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.throttled(ctx, traffic.Get(1000))
	},
}

// serverCFSThrottledBursts has the same quota, and a load that needs less than half of it on average. Its commands
// change: many of one kind, one after the other, would be another fault.
var serverCFSThrottledBursts = Scenario{
	ID:    "server-cfs-throttled-bursts",
	Cause: "server-cfs-throttled",
	Title: "a server under bursts of 80 ms every 500 ms, in a cgroup with a CPU quota of 20 ms per 100 ms",
	Fixes: []string{"remove-cpu-limit", "allow-bursts"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		const every, burst = 500 * time.Millisecond, 80 * time.Millisecond
		mixed := traffic.Mixed(1000)
		return l.throttled(ctx, func(r *rand.Rand, k int) []string {
			if since := time.Duration(time.Now().UnixNano()) % every; since > burst {
				time.Sleep(every - since) // all connections at once
			}
			return mixed(r, k)
		})
	},
}

// throttled starts a server in a cgroup with a quota of 20 ms, and a load of ten connections.
func (l *Lab) throttled(ctx context.Context, command func(*rand.Rand, int) []string) (Scene, error) {
	g, err := fault.CPUCgroup(l, "throttled", 20*time.Millisecond)
	if err != nil {
		return Scene{}, err
	}
	s, err := l.Start(ctx, fleet.Spec{CgroupProcs: g.AllProcs()})
	if err != nil {
		return Scene{}, err
	}
	l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Command: command})
	return Scene{Target: s.Addr}, nil
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
