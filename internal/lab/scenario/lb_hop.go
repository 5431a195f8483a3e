package scenario

import (
	"context"
	"sync/atomic"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// lbHop has a proxy that keeps replies for 30 ms, half of the time. The proxy is one of the lab's own: it stands in for
// a load balancer that is slow now and then.
var lbHop = Scenario{
	ID:    "lb-hop",
	Cause: "lb-hop",
	Title: "a proxy behind HAProxy that keeps all replies for 30 ms, half of the time",
	Fixes: []string{"no-proxy"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		slow := &fault.Proxy{Server: s.Addr}
		at, err := slow.Start(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		behind := []string{at, s.Addr}
		if l.Fixed("no-proxy") {
			at, behind = s.Addr, behind[1:]
		}
		outer, err := l.proxy(ctx, HAProxy, &fleet.Instance{Info: fleet.Info{Addr: at}})
		if err != nil {
			return Scene{}, err
		}
		var turns atomic.Int64
		l.Every(ctx, time.Second, func(context.Context) error {
			delay := time.Duration(turns.Add(1)%2) * 30 * time.Millisecond
			slow.Change(fault.Path{ReplyDelay: delay})
			return nil
		})
		// The callers are another process than the proxy, which is this one.
		return Scene{Target: outer.Addr, Args: behind}, l.Client(ctx, ClientSpec{
			Program: clients.GoRedis9, Options: clients.Options{
				Addresses: []string{outer.Addr}, Commands: smallReads(), Keys: Documents, Workers: 10, PoolSize: 10,
				Rate: 500,
			},
		})
	},
}
