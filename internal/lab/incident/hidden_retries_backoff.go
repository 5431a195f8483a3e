package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// hiddenRetriesBackoff loses one reply of fifty on its way. The server answers each call at once, and no caller gets an
// error: the library waits for its timeout, closes the connection, sleeps and tries again, on another one. What callers
// see is a call of a third of a second and more, or of several of them.
var hiddenRetriesBackoff = Incident{
	ID:    "hidden-retries-backoff",
	Cause: "hidden-retries-backoff",
	Title: "a go-redis client with ReadTimeout 300 ms that tries again by itself, behind a proxy that loses one " +
		"reply of fifty",
	Make: lostReplies(clients.GoRedis9, clients.Options{Workers: 20, Rate: 300, Random: true, ReadTimeout: 300 *
		time.Millisecond}, 50),
}

// hiddenRetriesBackoffRedisPy is the same by redis-py, whose ten retries wait up to a second in between.
var hiddenRetriesBackoffRedisPy = Incident{
	ID:    "hidden-retries-backoff-redis-py",
	Cause: "hidden-retries-backoff",
	Title: "a redis-py client with socket_timeout 1 s that tries again by itself, behind a proxy that loses one " +
		"reply of twenty",
	Watch: 12 * time.Second,
	Make: lostReplies(clients.RedisPy, clients.Options{Workers: 10, Rate: 60, Random: true, ReadTimeout: time.Second},
		20),
}

// lostReplies runs a client behind a proxy that loses one of so many replies.
func lostReplies(program clients.Name, o clients.Options, oneIn int) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, documents, 3); err != nil {
			return Scene{}, err
		}
		addr, err := l.swallowingProxy(ctx, s.Addr, "orders", oneIn)
		if err != nil {
			return Scene{}, err
		}
		o.Addresses, o.Name, o.Keys = []string{addr}, "orders", documents
		o.Commands = []clients.Command{
			{Args: []string{"GET", "doc:{n}"}, Weight: 3},
			{Args: []string{"SET", "order:{n}", "paid"}},
		}
		return Scene{Target: addr}, l.Client(ctx, clientSpec{Program: program, Options: o})
	}
}
