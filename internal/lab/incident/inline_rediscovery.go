package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// inlineRediscovery moves a slot now and then. node-redis fetches the map on a new connection, and the call that was
// answered MOVED waits for it.
var inlineRediscovery = Incident{
	ID:    "inline-rediscovery",
	Cause: "inline-rediscovery",
	Title: "a busy slot changes its master ten times per second, beside node-redis, which fetches the map inside of " +
		"the call",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.restlessSlot(ctx, clients.NodeRedis)
	},
}

// inlineRediscoveryRedisPy fetches the map on the calling thread at each fifth MOVED, and drops its connections.
var inlineRediscoveryRedisPy = Incident{
	ID:    "inline-rediscovery-redis-py",
	Cause: "inline-rediscovery",
	Title: "a busy slot changes its master ten times per second, beside redis-py, which fetches the map at each " +
		"fifth MOVED and drops its connections",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.restlessSlot(ctx, clients.RedisPy)
	},
}

// restlessSlot starts a cluster of which slot 0 changes its owner all the time, and an application that reads keys of
// it. The version is one that knows the libraries of its clients.
func (l *Lab) restlessSlot(ctx context.Context, who clients.Name) (Scene, error) {
	c, err := l.startCluster(ctx, "redis-8.0.2", 3, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	a, err := l.admin(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	if err := l.Client(ctx, clientSpec{Program: who, Options: clients.Options{
		Addresses: c.Addrs(),
		Mode:      protocol.Cluster,
		Commands:  []clients.Command{{Args: []string{"GET", movedKey("{n}")}}, {Args: []string{"GET", "doc:{n}"}}},
		Keys:      documents, Workers: 4, Rate: 200,
	}}); err != nil {
		return Scene{}, err
	}
	to := 0
	l.Every(ctx, 100*time.Millisecond, func(context.Context) error {
		to = 1 - to
		return a.settle(to, 0)
	})
	return Scene{Target: c.Nodes[0].Addr}, nil
}
