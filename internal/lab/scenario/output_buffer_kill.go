package scenario

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// outputBufferKill has a subscriber that stands still for two seconds with 8 MB per second to read, and a limit that a
// server of a small machine has.
var outputBufferKill = Scenario{
	ID:    "output-buffer-kill",
	Cause: "output-buffer-kill",
	Title: "a subscriber that reads nothing for 2 s, and client-output-buffer-limit pubsub 8mb",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"client-output-buffer-limit pubsub 8mb 4mb 60"}})
		if err != nil {
			return Scene{}, err
		}
		l.startCallers(ctx, 1, 100*time.Millisecond, func(ctx context.Context) error {
			return slowSubscriber(ctx, s.Addr)
		})
		message := strings.Repeat("x", 40_000)
		publish := traffic.Always("PUBLISH", "news", message)
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 1, Rate: 200, Command: publish})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 500, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// slowSubscriber subscribes, stands still for a while, and then reads until the server has closed its connection.
func slowSubscriber(ctx context.Context, addr string) error {
	c, err := dialCaller(ctx, net.Dialer{}, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer c.endWith(ctx)()
	if err := c.call("SUBSCRIBE", "news"); err != nil {
		return err
	}
	pause(ctx, 2*time.Second)
	_, _ = io.Copy(io.Discard, c) // it ends, as it is meant to
	return nil
}
