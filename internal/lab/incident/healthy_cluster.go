package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// healthyCluster is a cluster whose clients fetch the map as they should: often enough to be seen, and too cheap to be
// felt.
var healthyCluster = Incident{
	ID:    "healthy-cluster",
	Cause: HealthyCause,
	Title: "three masters, go-redis that refreshes its map each second, and node-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.startCluster(ctx, l.Server, 3, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		reads := clients.Options{
			Addresses: c.Addrs(), Mode: protocol.Cluster,
			Commands: []clients.Command{{Args: []string{"GET", "doc:{n}"}}, {Args: []string{"SET", "doc:{n}", "x"}}},
			Keys:     documents, Workers: 4, Rate: 200,
		}
		if err := l.Client(ctx, clientSpec{Program: clients.NodeRedis, Options: reads}); err != nil {
			return Scene{}, err
		}
		reads.TopologyRefresh = time.Second
		return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, clientSpec{Program: clients.GoRedis9, Options: reads})
	},
}
