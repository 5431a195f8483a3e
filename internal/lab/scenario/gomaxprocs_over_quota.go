package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// gomaxprocsOverQuota gives a client half a core, and its runtime 16 threads that may run at a time. They use up the
// quota early in each period, and all of them are throttled for the rest of it.
var gomaxprocsOverQuota = Scenario{
	ID:    "gomaxprocs-over-quota",
	Cause: "gomaxprocs-over-quota",
	Title: "a go-redis client with GOMAXPROCS 16 and 30 callers that decode replies, with a quota of half a core",
	Fixes: []string{"remove-cpu-limit"},
	Make:  manyProcs(50*time.Millisecond, 16, 30, 4000),
}

// gomaxprocsOverQuotaCore is the same with 8 threads and one core: with GOMAXPROCS=1 the same work would never be
// throttled. It needs two CPUs that are idle otherwise.
var gomaxprocsOverQuotaCore = Scenario{
	ID:    "gomaxprocs-over-quota-core",
	Cause: "gomaxprocs-over-quota",
	Title: "a go-redis client with GOMAXPROCS 8 and 30 callers that decode replies, with a quota of one core",
	Fixes: []string{"threads-fit-quota", "remove-cpu-limit"},
	Make:  manyProcs(100*time.Millisecond, 8, 30, 0),
}

// manyProcs runs a client whose runtime has more threads than its cgroup has cores. The quota is CPU time in each 100
// ms, the rate calls per second; 0: as many as it can.
func manyProcs(quota time.Duration, procs, workers int, rate float64) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		g, err := fault.CPUCgroup(l, "client", quota)
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
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: Documents, Workers: workers,
				PoolSize: workers, Rate: rate, DecodesPerCall: 2, Procs: l.FixedNumber("threads-fit-quota", procs),
			},
		})
	}
}
