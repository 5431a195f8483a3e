package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// dialHerd starts instances of an application one after the other, as a rolling deployment does, behind a proxy that
// takes a while for each new connection. The pool of each instance is cold: sixty callers come at once and each dials,
// though a few connections would do for them.
var dialHerd = Incident{
	ID:    "dial-herd-or-serialised-dial",
	Cause: "dial-herd-or-serialised-dial",
	Title: "instances of go-redis that start one after the other with cold pools, 60 callers each, behind a proxy " +
		"that takes 300 ms for a connection",
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.coldPools(ctx, clients.GoRedis9, 60)
	},
}

// dialHerdRedisPy does the same by threads of another library.
var dialHerdRedisPy = Incident{
	ID:    "dial-herd-or-serialised-dial-redis-py",
	Cause: "dial-herd-or-serialised-dial",
	Title: "instances of redis-py that start one after the other, 30 threads each, behind a proxy that takes 300 ms " +
		"for a connection",
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
	if err := fillDocuments(ctx, s, documents, 3); err != nil {
		return Scene{}, err
	}
	addr, err := l.slowAccept(ctx, s.Addr, 300*time.Millisecond)
	if err != nil {
		return Scene{}, err
	}
	spec := clientSpec{Program: program, Options: clients.Options{
		Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: documents,
		Workers: workers, PoolSize: workers, Rate: float64(5 * workers),
	}}
	if err := l.Client(ctx, spec); err != nil {
		return Scene{}, err
	}
	others := l.within()
	l.later(ctx, 2500*time.Millisecond, func(ctx context.Context) error { return others.Client(ctx, spec) })
	return Scene{Target: addr}, nil
}

// within is a lab that ends just before this one does: what is started in it may be started from another goroutine.
func (l *Lab) within() *Lab {
	in := *l
	in.cleanup = nil
	l.Defer(in.Close)
	return &in
}
