package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// healthyCluster is a cluster whose clients refresh the map at a harmless rate.
var healthyCluster = Scenario{
	ID:    "healthy-cluster",
	Cause: HealthyCause,
	Title: "three masters, go-redis with a map refresh each second, and node-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.Cluster(ctx, 3, 0, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		reads := clients.Options{
			Addresses: c.Addrs(), Mode: protocol.Cluster,
			Commands: []clients.Command{{Args: []string{"GET", "doc:{n}"}}, {Args: []string{"SET", "doc:{n}", "x"}}},
			Keys:     Documents, Workers: 4, Rate: 200,
		}
		if err := l.Client(ctx, ClientSpec{Program: clients.NodeRedis, Options: reads}); err != nil {
			return Scene{}, err
		}
		reads.TopologyRefresh = time.Second
		return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, ClientSpec{Program: clients.GoRedis9, Options: reads})
	},
}
