package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// inlineRediscovery moves a slot all the time. node-redis fetches the map on a new connection, and the call that got
// MOVED waits for it.
var inlineRediscovery = Scenario{
	ID:    "inline-rediscovery",
	Cause: "inline-rediscovery",
	Title: "a busy slot changes its master ten times per second, under node-redis",
	Fixes: []string{"move-in-large-steps"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.movingSlot(ctx, clients.NodeRedis)
	},
}

// inlineRediscoveryRedisPy fetches the map on the calling thread at each fifth MOVED, and drops its connections.
var inlineRediscoveryRedisPy = Scenario{
	ID:    "inline-rediscovery-redis-py",
	Cause: "inline-rediscovery",
	Title: "a busy slot changes its master ten times per second, under redis-py",
	Fixes: []string{"move-in-large-steps"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.movingSlot(ctx, clients.RedisPy)
	},
}

// movingSlot starts a cluster in which slot 0 changes its owner all the time, and a client that reads keys of it. The
// server's version is one that knows the libraries of its clients (CLIENT SETINFO).
func (l *Lab) movingSlot(ctx context.Context, library clients.Name) (Scene, error) {
	c, err := l.clusterOf(ctx, "redis-8.0.2", 3, 0, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	r, err := l.resharding(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	if err := l.Client(ctx, ClientSpec{Program: library, Options: clients.Options{
		Addresses: c.Addrs(),
		Mode:      protocol.Cluster,
		Commands: []clients.Command{
			{Args: []string{"GET", keyOfSlot(0, "doc:{n}")}},
			{Args: []string{"GET", "doc:{n}"}},
		},
		Keys: Documents, Workers: 4, Rate: 200,
	}}); err != nil {
		return Scene{}, err
	}
	l.moveSlots(ctx, r, 100*time.Millisecond, 1)
	return Scene{Target: c.Nodes[0].Addr}, nil
}
