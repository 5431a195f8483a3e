package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// dialHerd starts instances of an application one after the other, as a rolling deployment does, behind a proxy that
// takes a while for each new connection, as if it asked another service for permission. The pool of each instance is
// empty at first: 60 callers come at once and each dials, though a few connections would be enough.
var dialHerd = Scenario{
	ID:    "dial-herd-or-serialised-dial",
	Cause: "dial-herd-or-serialised-dial",
	Title: "processes of 60 go-redis callers that start one after the other, and 300 ms for a connection",
	Fixes: []string{"warm-pool"},
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.coldPools(ctx, clients.GoRedis9, 60)
	},
}

// dialHerdRedisPy does the same with threads and another library.
var dialHerdRedisPy = Scenario{
	ID:    "dial-herd-or-serialised-dial-redis-py",
	Cause: "dial-herd-or-serialised-dial",
	Title: "processes of 30 redis-py threads that start one after the other, and 300 ms for a connection",
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.coldPools(ctx, clients.RedisPy, 30)
	},
}

func (l *Lab) coldPools(ctx context.Context, program clients.Name, workers int) (Scene, error) {
	s, err := l.Start(ctx, fleet.Spec{Password: labPassword})
	if err != nil {
		return Scene{}, err
	}
	if err := fillDocuments(ctx, s, Documents, 3); err != nil {
		return Scene{}, err
	}
	addr, err := (&fault.Proxy{Server: s.Addr, AcceptDelay: 300 * time.Millisecond}).Start(ctx, l)
	if err != nil {
		return Scene{}, err
	}
	spec := ClientSpec{Program: program, Options: clients.Options{
		Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: Documents,
		Workers: workers, PoolSize: workers, Rate: float64(5 * workers),
	}}
	if ready := l.FixedNumber("warm-pool", 0); ready > 0 {
		spec.Options.MinIdle, spec.Options.FirstCallAfter = ready, time.Second
	}
	if err := l.Client(ctx, spec); err != nil {
		return Scene{}, err
	}
	others := l.Part()
	l.everyAfter(ctx, 2500*time.Millisecond, func(ctx context.Context) error { return others.Client(ctx, spec) })
	return Scene{Target: addr}, nil
}
