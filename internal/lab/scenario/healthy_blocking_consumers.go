package scenario

import (
	"context"
	"net"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// healthyBlockingConsumers wait by design: a queue and a stream get an entry every 40 ms, which is also the time of a
// delayed acknowledgement, and their consumers do nothing but wait for the next. Some wait since before the watch, and
// longer than it lasts.
var healthyBlockingConsumers = Scenario{
	ID:    "healthy-blocking-consumers",
	Cause: HealthyCause,
	Title: "consumers that wait in BLPOP and XREAD BLOCK for entries every 40 ms, or for nothing",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		err = l.startCaller(ctx, net.Dialer{}, s.Addr, 40*time.Millisecond, func(c *caller) error {
			if err := c.call("XADD", "events", "MAXLEN", "1000", "*", "field", "value"); err != nil {
				return err
			}
			return c.call("LPUSH", "queue", "job")
		})
		if err != nil {
			return Scene{}, err
		}
		for _, c := range []struct {
			program clients.Name
			args    []string
		}{
			{clients.RedisPy, []string{"XREAD", "BLOCK", "2000", "STREAMS", "events", "$"}},
			{clients.GoRedis9, []string{"BLPOP", "queue", "1"}},
			{clients.IORedis, []string{"BRPOP", "nothing", "queue", "0"}},
			{clients.Jedis, []string{"BLMOVE", "none", "other", "LEFT", "RIGHT", "1"}},
		} {
			if err := l.Client(ctx, ClientSpec{Program: c.program, Options: clients.Options{
				Addresses: []string{s.Addr}, Commands: []clients.Command{{Args: c.args}}, Workers: 2,
			}}); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 500, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}
