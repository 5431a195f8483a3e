package scenario

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// bigReplyBytes takes 96 ms on the link of the scenario.
const bigReplyBytes = 12 << 20

// multiplexBigReply reads a value of 12 MB twice a second on the connection that all callers of a client share, over a
// link of 1 Gbit/s. The replies behind it on the connection wait until it is transferred.
var multiplexBigReply = Scenario{
	ID:    "multiplex-hol-big-reply",
	Cause: "multiplex-hol-big-reply",
	Title: "GET of 12 MB twice a second, on a connection that 20 callers share",
	Fixes: []string{"own-connection"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		if err := ns.LimitReplies(ctx, "1gbit"); err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr})
		if err != nil {
			return Scene{}, err
		}
		if _, err := s.Do(ctx, "SET", "report", strings.Repeat("v", bigReplyBytes)); err != nil {
			return Scene{}, err
		}
		c, err := l.shareConn(ctx, s.Addr)
		if err != nil {
			return Scene{}, err
		}
		ofBig := c
		if l.Fixed("own-connection") {
			if ofBig, err = l.shareConn(ctx, s.Addr); err != nil {
				return Scene{}, err
			}
		}
		big, took := l.timings("GETs of 12 MB"), l.timings("small calls on the shared connection")
		others := l.timings("callers with connections of their own")
		l.startCallers(ctx, 20, 40*time.Millisecond, func(ctx context.Context) error {
			return took.time(func() error { return c.do(ctx, "GET", "lab:"+itoa(rand.IntN(10_000))) })
		})
		l.startCallers(ctx, 1, 500*time.Millisecond, func(ctx context.Context) error {
			return big.time(func() error { return ofBig.do(ctx, "GET", "report") })
		})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		return Scene{Target: s.Addr}, nil
	},
}
