package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// clientLockWait has a thread of a Python program compute nearly all the time: those that call wait for the lock of the
// interpreter with their replies in the sockets.
var clientLockWait = Scenario{
	ID:    "client-lock-wait",
	Cause: "client-lock-wait",
	Title: "redis-py in 8 threads, beside a thread of the same process that computes nearly all the time",
	Fixes: []string{"compute-elsewhere"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.RedisPy,
			Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: smallReads(), Keys: Documents, Workers: 8, Rate: 200,
				Random:     true,
				BlockEvery: 10 * time.Millisecond, BlockFor: 500 * time.Millisecond,
				BlockElsewhere: l.Fixed("compute-elsewhere"),
			},
		})
	},
}
