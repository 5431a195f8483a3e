package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// blockingOnSharedConn waits for the entries of a stream on the connection that all callers of a client share. The
// server serves no other command of it meanwhile. Its event loop and other connections are not affected.
var blockingOnSharedConn = Scenario{
	ID:    "blocking-cmd-on-shared-conn",
	Cause: "blocking-cmd-on-shared-conn",
	Title: "XREAD BLOCK 300 on a connection that 20 callers share",
	Fixes: []string{"own-connection"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		c, err := l.shareConn(ctx, s.Addr)
		if err != nil {
			return Scene{}, err
		}
		ofBlocking := c
		if l.Fixed("own-connection") {
			if ofBlocking, err = l.shareConn(ctx, s.Addr); err != nil {
				return Scene{}, err
			}
		}
		took, others := l.timings("small calls on the shared connection"),
			l.timings("callers with connections of their own")
		l.startCallers(ctx, 20, 40*time.Millisecond, func(ctx context.Context) error {
			return took.time(func() error { return c.do(ctx, "GET", "lab:"+itoa(rand.IntN(10_000))) })
		})
		l.startCallers(ctx, 1, 700*time.Millisecond, func(ctx context.Context) error {
			return ofBlocking.do(ctx, "XREAD", "BLOCK", "300", "STREAMS", "events", "$")
		})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		return Scene{Target: s.Addr}, nil
	},
}

// waitOnSharedConn waits for a stream on the connection that others share.
var waitOnSharedConn = Fault{
	Name:  "blocking-cmd-on-shared-conn",
	Cause: "blocking-cmd-on-shared-conn",
	Needs: Needs{Callers: []clients.Name{SharedConn}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"block_ms": between(r, 3, 300), "gap_ms": between(r, 100, 500)}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.startCallers(ctx, 1, s.millis("gap_ms"), func(ctx context.Context) error {
			return st.Own.shared.do(ctx, "XREAD", "BLOCK", itoa(s.int("block_ms")), "STREAMS", "events", "$")
		})
		return nil
	},
}
