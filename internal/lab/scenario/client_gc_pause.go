package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// clientGCPause keeps a cache of 200 000 containers in a Python process and replaces some with each reply. When a
// quarter is new CPython walks all of them, and nothing else runs: 60 to 100 ms, about once a second.
var clientGCPause = Scenario{
	ID:    "client-gc-pause",
	Cause: "client-gc-pause",
	Title: "an asyncio client whose garbage collector walks a cache of 200 000 containers",
	Fixes: []string{"collect-less-often"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, Documents, 3); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.PyAsync, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: Documents, Workers: 2, Burst: 8, Rate: 240,
				HeapObjects: 200_000, HeapPerCall: 600, GCThreshold: l.FixedNumber("collect-less-often", 0),
			},
		})
	},
}

// collectedHeap has a cache in the client's process that changes with each reply, so that the garbage collector walks
// all of it.
var collectedHeap = Fault{
	Name:  "client-gc-pause",
	Cause: "client-gc-pause",
	Needs: Needs{Callers: []clients.Name{clients.PyAsync}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"objects": between(r, 20_000, 300_000), "per_call": between(r, 100, 800)}
	},
	Base:   func(o *clients.Options, s Strength) { o.HeapObjects = s.int("objects") },
	Caller: func(o *clients.Options, s Strength) { o.HeapPerCall = s.int("per_call") },
}
