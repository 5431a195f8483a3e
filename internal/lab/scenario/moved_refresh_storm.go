package scenario

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/cluster"
)

// movedRefreshStorm moves slots all the time: calls to a slot that has moved get MOVED, and the library refreshes its
// map.
var movedRefreshStorm = Scenario{
	ID:    "moved-refresh-storm",
	Cause: "moved-refresh-storm",
	Title: "20 slots change their master 20 times per second, under four processes with ioredis",
	Fixes: []string{"move-in-large-steps"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.IORedis, 4)
	},
}

// movedRefreshStormGoRedis has a library that refreshes the map in the background, at most each 200 ms.
var movedRefreshStormGoRedis = Scenario{
	ID:    "moved-refresh-storm-go-redis",
	Cause: "moved-refresh-storm",
	Title: "20 slots change their master 20 times per second, under eight processes with go-redis",
	Fixes: []string{"move-in-large-steps"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.reshard(ctx, clients.GoRedis9, 8)
	},
}

const (
	movingSlots = 20
	moveEvery   = 50 * time.Millisecond
	readRate    = 40 // per second and process: two between two moves
	// largeStep is how many moves one is made of, where they are made at once: as many slots move as without it.
	largeStep = 160
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
	var reads []clients.Command
	for slot := range movingSlots {
		reads = append(reads, readsOfSlot(uint16(slot))...)
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
	l.moveSlots(ctx, r, moveEvery, movingSlots)
	return Scene{Target: c.Nodes[0].Addr}, nil
}

// moveSlots gives a number of slots to another owner at each turn, or as many per second in few large steps.
func (l *Lab) moveSlots(ctx context.Context, r *resharding, every time.Duration, slots int) {
	if l.Fixed("move-in-large-steps") {
		every, slots = every*largeStep, slots*largeStep
	}
	var all []int
	for slot := range slots {
		all = append(all, slot)
	}
	to := 0
	l.Every(ctx, every, func(context.Context) error {
		to = 1 - to
		return r.assign(to, all...)
	})
}

// movingDocuments move slots with documents of the callers back and forth between two masters: calls get ASK while a
// document moves, and MOVED afterwards.
var movingDocuments = Fault{
	Name:  "moved-refresh-storm",
	Cause: "moved-refresh-storm",
	Also:  []string{"ask-redirect-during-migration", "inline-rediscovery"},
	Needs: Needs{Topologies: []Topology{Clustered}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"documents": math.Round(between(r, 1, 40)), "every_ms": between(r, 150, 600)}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		r, err := l.resharding(ctx, st.Cluster)
		if err != nil {
			return err
		}
		documents := documentsOfTwo()
		documents = documents[:min(s.int("documents"), len(documents))]
		l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
			for _, key := range documents {
				if ctx.Err() != nil {
					return nil
				}
				if err := r.moveToOther(int(cluster.Slot([]byte(key))), key); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	},
}

// documentsOfTwo are the documents that the first two of three masters have at first, each alone in its slot.
func documentsOfTwo() (keys []string) {
	inSlot := map[uint16]int{}
	for i := range Documents {
		inSlot[cluster.Slot([]byte("doc:"+itoa(i)))]++
	}
	for i := range Documents {
		key := "doc:" + itoa(i)
		if slot := cluster.Slot([]byte(key)); slot < fleet.Slots*2/3-1 && inSlot[slot] == 1 {
			keys = append(keys, key)
		}
	}
	return keys
}
