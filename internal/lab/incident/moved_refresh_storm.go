package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// movedRefreshStorm moves slots all the time: calls to a slot that has moved get MOVED, and the library refreshes its
// map.
var movedRefreshStorm = Incident{
	ID:    "moved-refresh-storm",
	Cause: "moved-refresh-storm",
	Title: "20 slots change their master 20 times per second, under four processes with ioredis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.IORedis, 4)
	},
}

// movedRefreshStormGoRedis has a library that refreshes the map in the background, at most each 200 ms.
var movedRefreshStormGoRedis = Incident{
	ID:    "moved-refresh-storm-go-redis",
	Cause: "moved-refresh-storm",
	Title: "20 slots change their master 20 times per second, under eight processes with go-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.GoRedis9, 8)
	},
}

const (
	movingSlots = 20
	moveEvery   = 50 * time.Millisecond
	readRate    = 40 // per second and process: two between two moves
)

// reshard starts a cluster in which some slots change their owner all the time, and processes that read keys of them.
func (l *Lab) reshard(ctx context.Context, library clients.Name, processes int) (Scene, error) {
	c, err := l.Cluster(ctx, 3, 0, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	r, err := l.resharding(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	var slots []int
	var reads []clients.Command
	for slot := range movingSlots {
		slots, reads = append(slots, slot), append(reads, readsOfSlot(uint16(slot))...)
	}
	for range processes {
		if err := l.Client(ctx, ClientSpec{Program: library, Options: clients.Options{
			Addresses: c.Addrs(),
			Mode:      protocol.Cluster,
			Commands:  reads, Keys: Documents, Workers: 2, Rate: readRate,
		}}); err != nil {
			return Scene{}, err
		}
	}
	to := 0
	l.Every(ctx, moveEvery, func(context.Context) error {
		to = 1 - to
		return r.assign(to, slots...)
	})
	return Scene{Target: c.Nodes[0].Addr}, nil
}
