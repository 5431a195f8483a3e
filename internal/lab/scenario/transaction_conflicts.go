package scenario

import (
	"context"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/resp"
)

// transactionConflicts has many callers change the same key by WATCH, a read, 2 ms of their own work, and EXEC.
var transactionConflicts = Scenario{
	ID:    "transaction-conflicts",
	Cause: "transaction-conflicts",
	Title: "12 callers change one key by WATCH, GET, 2 ms of work and EXEC, until EXEC succeeds",
	Fixes: []string{"one-script"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		changes, inOneCall := l.timings("changes of the key"), l.Fixed("one-script")
		const callers = 12
		for range callers {
			err := l.startCaller(ctx, net.Dialer{}, s.Addr, 20*time.Millisecond, func(c *caller) error {
				return changes.time(func() error {
					if inOneCall {
						return c.call("INCRBY", "balance", "1")
					}
					return c.changeWatched("balance", 2*time.Millisecond)
				})
			})
			if err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: s.Addr}, nil
	},
}

// changeWatched changes a key by transactions, until one succeeds.
func (c *caller) changeWatched(key string, work time.Duration) error {
	for {
		for _, args := range [][]string{{"WATCH", key}, {"GET", key}} {
			if err := c.call(args...); err != nil {
				return err
			}
		}
		time.Sleep(work)
		for _, args := range [][]string{{"MULTI"}, {"SET", key, "1"}} {
			if err := c.call(args...); err != nil {
				return err
			}
		}
		if _, err := c.Write(resp.AppendCommand(nil, "EXEC")); err != nil {
			return err
		}
		sum, err := c.in.Skip()
		if err == nil {
			err = sum.Err()
		}
		if err != nil || sum.Elements > 0 { // null: the key was changed meanwhile
			return err
		}
	}
}
