package scenario

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// acceptBacklogOverflow sends bursts of new connections to a listener whose accept queue has room for four.
var acceptBacklogOverflow = Scenario{
	ID:    "accept-backlog-overflow",
	Cause: "accept-backlog-overflow",
	Title: "tcp-backlog 4, and bursts of 100 new connections",
	Fixes: []string{"larger-backlog", "keep-connections"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"tcp-backlog " + itoa(l.FixedNumber("larger-backlog", 4))}})
		if err != nil {
			return Scene{}, err
		}
		if l.Fixed("keep-connections") {
			for range 100 {
				err := l.startCaller(ctx, net.Dialer{}, s.Addr, 50*time.Millisecond, func(c *caller) error {
					return c.call("PING")
				})
				if err != nil {
					return Scene{}, err
				}
			}
			return Scene{Target: s.Addr}, nil
		}
		l.connectBursts(ctx, s.Addr, 100, 50*time.Millisecond)
		return Scene{Target: s.Addr}, nil
	},
}

// connectionBursts are more new connections than the accept queue has room for.
var connectionBursts = Fault{
	Name:    "accept-backlog-overflow",
	Cause:   "accept-backlog-overflow",
	Needs:   Needs{Topologies: []Topology{Standalone, Replicated}, Callers: []clients.Name{Redialling}},
	Lasts:   1100 * time.Millisecond, // a SYN that was dropped comes again after a second
	Culprit: "workers",
	Draw: func(r *rand.Rand) Strength {
		return Strength{
			"backlog": math.Round(2 + 30*r.Float64()), "connections": between(r, 5, 200),
			"every_ms": between(r, 40, 200),
		}
	},
	Config: func(_ *Lab, s Strength) []string { return []string{"tcp-backlog " + itoa(s.int("backlog"))} },
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		var wg sync.WaitGroup
		l.Defer(func(context.Context) error { wg.Wait(); return nil })
		l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
			for range s.int("connections") {
				wg.Go(func() { _ = namedOnce(ctx, st.Server.Addr, "workers") }) // that some fail is the fault
			}
			return nil
		})
		return nil
	},
}

// namedOnce opens a connection, names it, and closes it.
func namedOnce(ctx context.Context, addr, name string) error {
	c, err := dialCaller(ctx, net.Dialer{}, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer c.endWith(ctx)()
	if err := c.call("CLIENT", "SETNAME", name); err != nil {
		return fmt.Errorf("naming a new connection: %w", err)
	}
	return nil
}
