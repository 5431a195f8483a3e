package scenario

import (
	"context"
	"fmt"
	"runtime"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// ioThreadsOversubscribed gives the server more I/O threads than there are CPUs. They wait for each other by spinning.
var ioThreadsOversubscribed = Scenario{
	ID:    "io-threads-oversubscribed",
	Cause: "io-threads-oversubscribed",
	Title: "io-threads 8 on fewer CPUs, and 50 callers",
	Fixes: []string{"fewer-io-threads"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if l.Server == "redis-5.0.6" {
			return Scene{}, fmt.Errorf("%w: %s has no io-threads", fault.ErrCannot, l.Server)
		}
		if n := runtime.NumCPU(); n >= 8 {
			return Scene{}, fmt.Errorf("%w: %d CPUs are enough for 8 threads", fault.ErrCannot, n)
		}
		s, err := l.Start(ctx, fleet.Spec{Config: []string{
			"io-threads " + itoa(l.FixedNumber("fewer-io-threads", 8)), "io-threads-do-reads yes",
		}})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 50, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
