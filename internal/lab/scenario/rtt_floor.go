package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// rttFloor adds 8 ms to the path to an idle server, as when it is in another region or behind a slow proxy.
var rttFloor = Scenario{
	ID:    "rtt-floor",
	Cause: "rtt-floor",
	Title: "a path that delays every reply by 8 ms",
	Fixes: []string{"near-the-server"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		far, err := (&fault.Proxy{Server: s.Addr, ReplyDelay: 8 * time.Millisecond}).Start(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		if l.Fixed("near-the-server") {
			far = s.Addr
		}
		l.Load(ctx, traffic.Spec{Addr: far, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000)})
		return Scene{Target: far}, nil
	},
}

// distance lets all replies come later.
var distance = Fault{
	Name:     "rtt-floor",
	Cause:    "rtt-floor",
	Distance: true,
	Needs:    Needs{Topologies: []Topology{Proxied}},
	Draw:     func(r *rand.Rand) Strength { return Strength{"delay_ms": between(r, 0.1, 15)} },
	On: func(_ context.Context, l *Lab, st *Stage, s Strength) error {
		st.changePath(l, func(now *fault.Path) { now.ReplyDelay += s.millis("delay_ms") },
			func(now *fault.Path) { now.ReplyDelay -= s.millis("delay_ms") })
		return nil
	},
}

// changePath changes what the proxy does, until l ends. Faults are switched one after the other.
func (st *Stage) changePath(l *Lab, change, back func(*fault.Path)) {
	set := func(f func(*fault.Path)) {
		f(&st.path)
		now := st.path
		now.ReplyDelay += st.Delay
		st.Proxy.Change(now)
	}
	set(change)
	l.Defer(func(context.Context) error { set(back); return nil })
}
