package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// movedRefreshStorm is a resharding that comes back again and again: calls to a slot that went are answered MOVED, and
// the library fetches the map anew.
var movedRefreshStorm = Incident{
	ID:    "moved-refresh-storm",
	Cause: "moved-refresh-storm",
	Title: "20 slots change their master 20 times per second, beside four processes with ioredis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.IORedis, 4)
	},
}

// movedRefreshStormGoRedis has a library that fetches the map in the background, and at most each 200 ms.
var movedRefreshStormGoRedis = Incident{
	ID:    "moved-refresh-storm-go-redis",
	Cause: "moved-refresh-storm",
	Title: "20 slots change their master 20 times per second, beside eight processes with go-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.GoRedis9, 8)
	},
}

const (
	restlessSlots = 20
	restlessEvery = 50 * time.Millisecond
	readsOfEach   = 40 // per second and process: two between two changes
)

// reshard starts a cluster of which some slots change their owner all the time, and some processes that read keys of
// them.
func (l *Lab) reshard(ctx context.Context, who clients.Name, processes int) (Scene, error) {
	c, err := l.startCluster(ctx, l.Server, 3, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	a, err := l.admin(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	var slots []int
	var reads []clients.Command
	for slot := range restlessSlots {
		slots, reads = append(slots, slot), append(reads, readsOfSlot(uint16(slot))...)
	}
	for range processes {
		if err := l.Client(ctx, clientSpec{Program: who, Options: clients.Options{
			Addresses: c.Addrs(),
			Mode:      protocol.Cluster,
			Commands:  reads, Keys: documents, Workers: 2, Rate: readsOfEach,
		}}); err != nil {
			return Scene{}, err
		}
	}
	to := 0
	l.Every(ctx, restlessEvery, func(context.Context) error {
		to = 1 - to
		return a.settle(to, slots...)
	})
	return Scene{Target: c.Nodes[0].Addr}, nil
}
