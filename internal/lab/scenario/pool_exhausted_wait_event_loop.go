package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/fleet"
)

// poolExhaustedWaitEventLoop has callers who never use a connection themselves: Netty's threads send and read for them.
var poolExhaustedWaitEventLoop = Scenario{
	ID:    "pool-exhausted-wait-event-loop",
	Cause: "pool-exhausted-wait",
	Title: "Redisson with a connectionPoolSize of 2 for 40 threads, 2 ms from its server",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{}, 2*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		s, _, err := l.runApp(ctx, apps.App{Name: "redisson"}, appScene{addr: addr, target: Scene{Target: addr}},
			apps.Options{Rate: 1000, Callers: 40, PoolSize: 2})
		return s, err
	},
}
