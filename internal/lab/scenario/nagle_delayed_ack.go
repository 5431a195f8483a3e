package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// nagleDelayedACK has clients that write the head of a SET and then its value, without TCP_NODELAY. Their kernel holds
// the value back until the head is acknowledged (RFC 896). The server's kernel delays the acknowledgement for 40 ms,
// since a reply could carry it (TCP_DELACK_MIN of include/net/tcp.h).
var nagleDelayedACK = Scenario{
	ID:    "nagle-delayed-ack",
	Cause: "nagle-delayed-ack",
	Title: "clients without TCP_NODELAY that send the head and the value of a SET in two writes",
	Fixes: []string{"tcp-nodelay", "one-write"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		took, others := l.timings("SETs in two writes"), l.timings("other callers")
		noDelay := l.FixedNumber("tcp-nodelay", 0) == 1
		set := setInTwoWrites
		if l.Fixed("one-write") {
			set = setInOneWrite
		}
		const clients = 4
		for range clients {
			err := l.startCaller(ctx, net.Dialer{}, s.Addr, 20*time.Millisecond, func(c *caller) error {
				if err := c.SetNoDelay(noDelay); err != nil { // Go sets it on every connection
					return err
				}
				return took.time(func() error { return set(c, 500) })
			})
			if err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		return Scene{Target: s.Addr}, nil
	},
}

// setInTwoWrites sends SET with a value of a size in bytes.
func setInTwoWrites(c *caller, bytes int) error {
	key := "two:" + itoa(rand.IntN(1000))
	if _, err := fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, bytes); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "%s\r\n", strings.Repeat("v", bytes)); err != nil {
		return err
	}
	return c.reply()
}

// setInOneWrite sends the same as setInTwoWrites.
func setInOneWrite(c *caller, bytes int) error {
	return c.call("SET", "two:"+itoa(rand.IntN(1000)), strings.Repeat("v", bytes))
}

// noNoDelay takes TCP_NODELAY from clients that write twice.
var noNoDelay = Fault{
	Name:  "nagle-delayed-ack",
	Cause: "nagle-delayed-ack",
	Needs: Needs{Callers: []clients.Name{TwoWrites}},
	Draw:  func(*rand.Rand) Strength { return Strength{} },
	On: func(_ context.Context, l *Lab, st *Stage, _ Strength) error {
		l.Defer(func(context.Context) error { st.Own.nagle.Store(false); return nil })
		st.Own.nagle.Store(true)
		return nil
	},
}
