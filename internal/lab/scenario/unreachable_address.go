package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// dropAll has a namespace answer nothing.
const dropAll = "table inet silent {\nchain in {\ntype filter hook input priority 0; policy drop;\n}\n}\n"

// silentTimeout is how long a job waits for a connection to one address.
const silentTimeout = 300 * time.Millisecond

// unreachableAddress has jobs with a connection each, and two addresses of their server, of which the first is silent.
var unreachableAddress = Scenario{
	ID:    "unreachable-address",
	Cause: "unreachable-address",
	Title: "jobs that first dial an address whose packets are dropped, for up to 300 ms, and then the server's",
	Fixes: []string{"drop-dead-address"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		silent, err := l.silentAddress(ctx, s.Port)
		if err != nil {
			return Scene{}, err
		}
		addresses := []string{silent, s.Addr}
		if l.Fixed("drop-dead-address") {
			addresses = addresses[1:]
		}
		took := l.timings("jobs")
		l.startCallers(ctx, 8, 400*time.Millisecond, func(ctx context.Context) error {
			return took.time(func() error { return job(ctx, addresses) })
		})
		return Scene{Target: s.Addr}, nil
	},
}

// silentAddress makes an address whose packets are dropped.
func (l *Lab) silentAddress(ctx context.Context, port int) (string, error) {
	silent, err := fault.NewNetNS(ctx, l)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(silent.Addr, itoa(port)), silent.Rules(ctx, dropAll)
}

// job makes some calls on a connection of its own, to the first address that answers.
func job(ctx context.Context, addresses []string) error {
	var failed error
	for _, a := range addresses {
		c, err := dialCaller(ctx, net.Dialer{Timeout: silentTimeout}, a)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		defer c.Close()
		defer c.endWith(ctx)()
		for range 3 {
			if err := c.call("GET", "lab:1"); err != nil {
				return err
			}
		}
		return nil
	}
	return failed
}

// deadAddress is a silent address that callers dial before the right one.
var deadAddress = Fault{
	Name:  "unreachable-address",
	Cause: "unreachable-address",
	Needs: Needs{Topologies: []Topology{Standalone, Replicated}, Callers: []clients.Name{Redialling}},
	Lasts: silentTimeout,
	Draw:  func(r *rand.Rand) Strength { return Strength{"dial_timeout_ms": between(r, 2, 300)} },
	Prepare: func(ctx context.Context, l *Lab, st *Stage, _ Strength) (err error) {
		st.silent, err = l.silentAddress(ctx, st.Server.Port)
		return err
	},
	On: func(_ context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(context.Context) error { st.Own.silent.Store(nil); return nil })
		st.Own.silent.Store(&silentFirst{st.silent, s.millis("dial_timeout_ms")})
		return nil
	},
}
