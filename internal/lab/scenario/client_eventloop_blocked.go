package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// clientEventLoopBlocked computes on the event loop of the client for 50 to 150 ms, while replies wait in the sockets.
var clientEventLoopBlocked = Scenario{
	ID:    "client-eventloop-blocked",
	Cause: "client-eventloop-blocked",
	Title: "an asyncio client whose coroutine computes for 50 to 150 ms, twice a second",
	Fixes: []string{"unblock-event-loop"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, Documents, 3); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.PyAsync, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: Documents, Workers: 2, Burst: 8, Rate: 200,
				BlockEvery: 400 * time.Millisecond, BlockFor: 100 * time.Millisecond,
				BlockElsewhere: l.Fixed("unblock-event-loop"),
			},
		})
	},
}

// blockedEventLoop computes on the event loop of the client.
var blockedEventLoop = Fault{
	Name:  "client-eventloop-blocked",
	Cause: "client-eventloop-blocked",
	Needs: Needs{Callers: []clients.Name{clients.PyAsync}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"every_ms": between(r, 100, 400), "block_ms": between(r, 1, 120)}
	},
	Caller: func(o *clients.Options, s Strength) {
		o.BlockEvery, o.BlockFor = s.millis("every_ms"), s.millis("block_ms")
	},
}
