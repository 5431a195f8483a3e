package incident

import (
	"context"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// gomaxprocsOverQuota gives a client half a core, and its runtime 16 threads that may run at once. They spend the quota
// of a period early, and all of them stand still for the rest of it.
var gomaxprocsOverQuota = Incident{
	ID:    "gomaxprocs-over-quota",
	Cause: "gomaxprocs-over-quota",
	Title: "a go-redis client with GOMAXPROCS 16 in a cgroup with a quota of half a core, and 30 callers that decode " +
		"their replies",
	Make: manyProcs(50_000, 16, 30),
}

// gomaxprocsOverQuotaCore is the same with 8 threads and one core: with GOMAXPROCS=1 the same work would never be
// throttled. It needs a machine with two CPUs that are not busy otherwise.
var gomaxprocsOverQuotaCore = Incident{
	ID:    "gomaxprocs-over-quota-core",
	Cause: "gomaxprocs-over-quota",
	Title: "a go-redis client with GOMAXPROCS 8 in a cgroup with a quota of one core, and 30 callers that decode " +
		"their replies",
	Make: manyProcs(100_000, 8, 30),
}

// manyProcs runs a client whose runtime has more threads than its cgroup has cores; the quota is in microseconds of
// each 100 ms.
func manyProcs(quotaUs, procs, workers int) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		g, err := l.CPUCgroup(ctx, "client")
		if err != nil {
			return Scene{}, err
		}
		if err := g.Quota(quotaUs, 100_000); err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, documents, 20); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, clientSpec{
			Program: clients.GoRedis9, Cgroup: g,
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: documents, Workers: workers,
				PoolSize: workers, DecodesPerCall: 2, Procs: procs,
			},
		})
	}
}
