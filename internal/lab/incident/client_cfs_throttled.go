package incident

import (
	"context"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// clientCFSThrottled is the twin of server-cfs-throttled: the client's container may use a fifth of a core, and its
// replies want more.
var clientCFSThrottled = Incident{
	ID:    "client-cfs-throttled",
	Cause: "client-cfs-throttled",
	Title: "a go-redis client in a cgroup with a quota of 20 ms per 100 ms, decoding its replies",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		g, err := l.CPUCgroup(ctx, "client")
		if err != nil {
			return Scene{}, err
		}
		if err := g.Quota(20_000, 100_000); err != nil {
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
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: documents, Workers: 4, DecodesPerCall: 1,
			},
		})
	},
}
