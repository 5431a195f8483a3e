package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/lab/clients/protocol"
)

// movedRefreshStorm is a resharding slot by slot of empty slots: each call to one that went is answered MOVED, and the library fetches the map anew.
var movedRefreshStorm = Incident{
	ID:    "moved-refresh-storm",
	Cause: "moved-refresh-storm",
	Title: "500 slots go back and forth between two masters, ten at a time, beside five clients of ioredis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.IORedis, 5)
	},
}

// movedRefreshStormGoRedis has a library that fetches the map in the background.
var movedRefreshStormGoRedis = Incident{
	ID:    "moved-refresh-storm-go-redis",
	Cause: "moved-refresh-storm",
	Title: "500 slots go back and forth between two masters, ten at a time, beside ten clients of go-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.GoRedis9, 10)
	},
}

const (
	restlessSlots = 500
	slotsPerStep  = 10
)

// reshard starts a cluster whose slots change their owners ten times per second, and some clients that read keys of all slots.
func (l *Lab) reshard(ctx context.Context, who clients.Name, processes int) (Scene, error) {
	c, err := l.startCluster(ctx, l.Server, 3, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	a, err := l.admin(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	for range processes {
		if err := l.Client(ctx, clientSpec{Program: who, Options: clients.Options{Addresses: c.Addrs(), Mode: protocol.Cluster,
			Commands: []clients.Command{{Args: []string{"GET", "doc:{n}"}}}, Keys: 100_000, Workers: 4, Rate: 1000 / float64(processes)}}); err != nil {
			return Scene{}, err
		}
	}
	step := 0
	l.Every(ctx, 100*time.Millisecond, func(context.Context) error {
		const rounds = restlessSlots / slotsPerStep
		var slots []int
		for i := range slotsPerStep {
			slots = append(slots, step%rounds*slotsPerStep+i)
		}
		to := 1 - step/rounds%2 // there, and back
		step++
		return a.settle(to, slots...)
	})
	return Scene{Target: c.Nodes[0].Addr}, nil
}
