package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// clientCFSThrottled is server-cfs-throttled at the client: its cgroup may use a fifth of a core, and decoding its
// replies takes more.
var clientCFSThrottled = Scenario{
	ID:    "client-cfs-throttled",
	Cause: "client-cfs-throttled",
	Title: "a go-redis client that decodes its replies, in a cgroup with a CPU quota of 20 ms per 100 ms",
	Fixes: []string{"remove-cpu-limit"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		g, err := fault.CPUCgroup(l, "client", 20*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, Documents, 20); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.GoRedis9, Cgroup: g,
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: Documents, Workers: 4, Rate: 4000,
				DecodesPerCall: 1,
			},
		})
	},
}

// clientQuota gives the first caller a CPU quota.
var clientQuota = Fault{
	Name:  "client-cfs-throttled",
	Cause: "client-cfs-throttled",
	Needs: Needs{Callers: processes},
	Draw:  func(r *rand.Rand) Strength { return Strength{"quota_ms": between(r, 2, 60)} },
	On: func(_ context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(context.Context) error { return st.ClientQuota.SetQuota(0) })
		return st.ClientQuota.SetQuota(s.millis("quota_ms"))
	},
}
