package scenario

import (
	"context"
	"math/rand/v2"
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

// heldInterpreter has a thread of a Python program compute beside those that call.
var heldInterpreter = Fault{
	Name:  "client-lock-wait-interpreter",
	Cause: "client-lock-wait",
	Needs: Needs{Callers: []clients.Name{clients.RedisPy}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"every_ms": between(r, 5, 100), "compute_ms": between(r, 1, 500)}
	},
	Caller: func(o *clients.Options, s Strength) {
		o.BlockEvery, o.BlockFor = s.millis("every_ms"), s.millis("compute_ms")
	},
}

// heldLock has a thread hold a lock of the application that others take before they call.
var heldLock = Fault{
	Name:  "client-lock-wait",
	Cause: "client-lock-wait",
	Needs: Needs{Callers: []clients.Name{
		clients.GoRedis6, clients.GoRedis8, clients.GoRedis9, clients.Redigo, clients.Rueidis, clients.Jedis,
		clients.Lettuce6, clients.Lettuce7, clients.RedisPy,
	}},
	Lasts: 200 * time.Millisecond,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"every_ms": between(r, 50, 400), "held_ms": between(r, 1, 150)}
	},
	Caller: func(o *clients.Options, s Strength) {
		o.LockEvery, o.LockFor = s.millis("every_ms"), s.millis("held_ms")
	},
}
