package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// dialHerd starts instances of an application one after the other, as a rolling deployment does. The pool of each is cold: sixty callers
// come at once and each dials, 8 ms from its server.
var dialHerd = Incident{
	ID:    "dial-herd-or-serialised-dial",
	Cause: "dial-herd-or-serialised-dial",
	Title: "instances of go-redis that start one after the other with cold pools, 60 callers each, 8 ms from their server",
	Args:  []string{"-a", labPassword},
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 8)
		if err != nil {
			return Scene{}, err
		}
		spec := clientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: documents,
			Workers: 60, PoolSize: 60, Rate: 600}}
		if err := l.Client(ctx, spec); err != nil {
			return Scene{}, err
		}
		others := l.within()
		l.later(ctx, 2500*time.Millisecond, func(ctx context.Context) error { return others.Client(ctx, spec) })
		return Scene{Target: addr}, nil
	},
}

// within is a lab that ends just before this one does: what is started in it may be started from another goroutine.
func (l *Lab) within() *Lab {
	in := *l
	in.cleanup = nil
	l.Defer(in.Close)
	return &in
}
