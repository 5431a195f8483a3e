package scenario

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
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

// pageBytes is the size of what callers sometimes read, as a limit of output buffers may not allow.
const pageBytes = 200_000

// killedReaders limits the output buffers of clients, some of whose replies are large.
var killedReaders = Fault{
	Name:  "output-buffer-kill",
	Cause: "output-buffer-kill",
	Needs: Needs{
		Topologies: oneServer,
		Servers:    serversBut(servers.Valkey912), // large values do not pass its output buffers
		Callers: []clients.Name{
			clients.GoRedis6, clients.GoRedis8, clients.GoRedis9, clients.Redigo, clients.Jedis, clients.RedisPy,
		},
	},
	Lasts: 300 * time.Millisecond, // clients wait before they try again
	Draw:  func(r *rand.Rand) Strength { return Strength{"limit_kb": between(r, 40, 400)} },
	Base: func(o *clients.Options, _ Strength) {
		o.Commands = append(o.Commands, clients.Command{Args: []string{"GET", "page"}})
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, _ Strength) error {
		_, err := st.Server.Do(ctx, "SET", "page", strings.Repeat("x", pageBytes))
		return err
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		limit := func(ctx context.Context, bytes int) error {
			_, err := st.Server.Do(ctx, "CONFIG", "SET", "client-output-buffer-limit", "normal "+itoa(bytes)+" 0 0")
			return err
		}
		l.Defer(func(ctx context.Context) error { return limit(ctx, 0) })
		return limit(ctx, s.int("limit_kb")*1000)
	},
}
