package incident

import (
	"context"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// clientGCPause keeps a cache of 200 000 containers in a Python process and replaces some with each reply. When a
// quarter is new CPython walks all of them, and nothing else runs: 60 to 100 ms, about once a second.
var clientGCPause = Incident{
	ID:    "client-gc-pause",
	Cause: "client-gc-pause",
	Title: "an asyncio client whose garbage collector walks a cache of 200 000 containers",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, documents, 3); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, clientSpec{
			Program: clients.PyAsync, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: documents, Workers: 2, Burst: 8, Rate: 240,
				HeapObjects: 200_000, HeapPerCall: 600,
			},
		})
	},
}
