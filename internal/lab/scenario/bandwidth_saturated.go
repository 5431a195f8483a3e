package scenario

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// The documents that callers read again and again, and what the shaper of the path lets through.
const (
	document      = "document"
	documentBytes = 60_000
	shapedRate    = "60mbit"
	shapedQueue   = "3mb" // larger than what all replies together can be: nothing is lost
)

// bandwidthSaturated shapes what leaves the server's network, as clouds and container networks do. Big replies fill the
// queue of the shaper, and small ones wait behind them.
var bandwidthSaturated = Scenario{
	ID:    "bandwidth-saturated",
	Cause: "bandwidth-saturated",
	Title: "documents of 60 kB fill a path of 60 Mbit/s",
	Fixes: []string{"more-bandwidth", "fewer-bytes"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		ns, err := fault.NewNetNS(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{NetNS: ns.Name, Bind: ns.Addr})
		if err != nil {
			return Scene{}, err
		}
		bytes := documentBytes
		if l.Fixed("fewer-bytes") {
			bytes /= 20
		}
		if _, err := s.Do(ctx, "SET", document, strings.Repeat("x", bytes)); err != nil {
			return Scene{}, err
		}
		if !l.Fixed("more-bandwidth") {
			if err := ns.Shape(ctx, shapedRate, shapedQueue); err != nil {
				return Scene{}, err
			}
		}
		read := func(*rand.Rand, int) []string { return []string{"GET", document} }
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 200, Command: read})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 200, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// unshaped is more than the path lets through anyway.
const unshaped = "20gbit"

// narrowBandwidth shapes what leaves the server's network, and has others read documents that fill it.
var narrowBandwidth = Fault{
	Name:    "bandwidth-saturated",
	Cause:   "bandwidth-saturated",
	Needs:   Needs{Topologies: []Topology{Namespaced}},
	Culprit: "gallery",
	Draw: func(r *rand.Rand) Strength {
		return Strength{
			"mbit_per_second": math.Round(30 + 120*r.Float64()), "documents_per_second": between(r, 20, 250),
			"connections": float64(1 + r.IntN(8)),
		}
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, _ Strength) error {
		if _, err := st.Server.Do(ctx, "SET", document, strings.Repeat("x", documentBytes)); err != nil {
			return err
		}
		return st.NetNS.Shape(ctx, unshaped, shapedQueue)
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(ctx context.Context) error { return st.NetNS.Shape(ctx, unshaped, shapedQueue) })
		if err := st.NetNS.Shape(ctx, itoa(s.int("mbit_per_second"))+"mbit", shapedQueue); err != nil {
			return err
		}
		read := traffic.Always("GET", document)
		l.Load(ctx, st.load("gallery", s.int("connections"), s["documents_per_second"], read))
		return nil
	},
}
