package scenario

import (
	"context"
	"net"
	"time"

	"slowpath/internal/lab/traffic"
)

// waitOrMinReplicas has a report run on the replica: a script of about 50 ms, several times a second. Meanwhile the
// replica acknowledges nothing, and the master, which goes on serving others, keeps WAIT waiting.
var waitOrMinReplicas = Scenario{
	ID:    "wait-or-min-replicas",
	Cause: "wait-or-min-replicas",
	Title: "orders that are written with WAIT, while a report in Lua runs on the replica",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.orders(ctx, true)
	},
}

// orders are written on a master, each with a WAIT for its replica, on which a report may run.
func (l *Lab) orders(ctx context.Context, report bool) (Scene, error) {
	master, replica, err := l.masterAndReplica(ctx)
	if err != nil {
		return Scene{}, err
	}
	if report {
		l.Every(ctx, 300*time.Millisecond, func(ctx context.Context) error {
			_, err := replica.Do(ctx, "EVAL", counting(6_000_000)+" return n", "0")
			return err
		})
	}
	for range 3 {
		err := l.startCaller(ctx, net.Dialer{}, master.Addr, 20*time.Millisecond, func(c *caller) error {
			if err := c.call("INCR", "orders"); err != nil {
				return err
			}
			return c.call("WAIT", "1", "1000")
		})
		if err != nil {
			return Scene{}, err
		}
	}
	l.Load(ctx, traffic.Spec{Addr: master.Addr, Conns: 4, Rate: 500, Command: traffic.Mixed(10_000)})
	return Scene{Target: master.Addr}, nil
}
