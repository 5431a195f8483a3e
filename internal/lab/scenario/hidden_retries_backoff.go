package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// hiddenRetriesBackoff loses one reply of 50. The server answers each call at once, and no caller gets an error: the
// library waits for its timeout, closes the connection, sleeps and retries on another one. A caller sees a call that
// takes 300 ms and more, or several times that.
var hiddenRetriesBackoff = Scenario{
	ID:    "hidden-retries-backoff",
	Cause: "hidden-retries-backoff",
	Title: "go-redis with ReadTimeout 300 ms and its own retries, behind a proxy that loses one reply of 50",
	Fixes: []string{"past-the-proxy"},
	Make: lostReplies(clients.GoRedis9, clients.Options{Workers: 20, Rate: 300, Random: true, ReadTimeout: 300 *
		time.Millisecond}, 50),
}

// hiddenRetriesBackoffRedisPy is the same with redis-py, which retries ten times with up to a second in between.
var hiddenRetriesBackoffRedisPy = Scenario{
	ID:    "hidden-retries-backoff-redis-py",
	Cause: "hidden-retries-backoff",
	Title: "redis-py with socket_timeout 1 s and its own retries, behind a proxy that loses one reply of 20",
	Fixes: []string{"past-the-proxy"},
	Watch: 12 * time.Second,
	Make: lostReplies(clients.RedisPy, clients.Options{Workers: 10, Rate: 60, Random: true, ReadTimeout: time.Second},
		20),
}

// lostReplies runs a client behind a proxy that loses one reply of oneIn.
func lostReplies(program clients.Name, o clients.Options, oneIn int) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, s, Documents, 3); err != nil {
			return Scene{}, err
		}
		addr, err := (&fault.Proxy{Server: s.Addr, LoseOneIn: oneIn, LoseOf: "orders"}).Start(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		if l.Fixed("past-the-proxy") {
			addr = s.Addr
		}
		o.Addresses, o.Name, o.Keys = []string{addr}, "orders", Documents
		o.Commands = []clients.Command{
			{Args: []string{"GET", "doc:{n}"}, Weight: 3},
			{Args: []string{"SET", "order:{n}", "paid"}},
		}
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: program, Options: o})
	}
}

// lostRepliesOfProxy loses replies, which libraries ask for again after their timeout.
var lostRepliesOfProxy = Fault{
	Name:  "hidden-retries-backoff",
	Cause: "hidden-retries-backoff",
	Needs: Needs{
		Topologies: []Topology{Proxied}, Callers: []clients.Name{clients.GoRedis8, clients.GoRedis9, clients.RedisPy},
	},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"lose_one_in": between(r, 30, 1000), "read_timeout_ms": between(r, 50, 300)}
	},
	Base: func(o *clients.Options, s Strength) { o.ReadTimeout = s.millis("read_timeout_ms") },
	On: func(_ context.Context, l *Lab, st *Stage, s Strength) error {
		st.changePath(l, func(now *fault.Path) { now.LoseOneIn = s.int("lose_one_in") },
			func(now *fault.Path) { now.LoseOneIn = 0 })
		return nil
	},
}
