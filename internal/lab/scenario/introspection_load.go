package scenario

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// introspectionLoad is an exporter that asks for too much: CLIENT LIST with 300 clients connected, and the exact size
// of a big hash.
var introspectionLoad = Scenario{
	ID:    "introspection-load",
	Cause: "introspection-load",
	Title: "an exporter that asks for CLIENT LIST, INFO and MEMORY USAGE … SAMPLES 0 of a big hash",
	Fixes: []string{"poll-rarely"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillHash(ctx, s, "big:hash", 400_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 300, Rate: 1000, Command: traffic.Mixed(10_000)})
		if seconds := l.FixedNumber("poll-rarely", 0); seconds > 0 {
			l.Every(ctx, time.Duration(seconds)*time.Second, func(ctx context.Context) error {
				for _, ask := range [][]string{
					{"MEMORY", "USAGE", "big:hash", "SAMPLES", "5"}, {"INFO", "clients"}, {"INFO", "stats"},
				} {
					if _, err := s.Do(ctx, ask...); err != nil {
						return err
					}
				}
				return nil
			})
			return Scene{Target: s.Addr}, nil
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 2, Rate: 5, Command: traffic.Always("MEMORY", "USAGE", "big:hash",
			"SAMPLES", "0")})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 2, Rate: 50, Command: traffic.Always("CLIENT", "LIST")})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 2, Rate: 100, Command: traffic.Always("INFO", "all")})
		return Scene{Target: s.Addr}, nil
	},
}

// introspectionMonitor copies a pipelined load to three MONITOR clients.
var introspectionMonitor = Scenario{
	ID:    "introspection-load-monitor",
	Cause: "introspection-load",
	Title: "three MONITOR clients and a pipelined load",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		for range 3 {
			if _, err := l.discard(ctx, s.Addr, "MONITOR\r\n"); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 30, Pipeline: 100, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// discard opens a client that sends something first, and reads what comes until the lab ends.
func (l *Lab) discard(ctx context.Context, addr, first string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, first); err != nil {
		c.Close()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		room := make([]byte, 1<<17) // few reads, which take no CPU of the server's
		for {
			if _, err := c.Read(room); err != nil {
				return // it is closed
			}
		}
	}()
	l.Defer(func(context.Context) error { c.Close(); <-done; return nil })
	return c, nil
}

// exporter asks for CLIENT LIST and INFO, with many clients connected.
var exporter = Fault{
	Name:    "introspection-load",
	Cause:   "introspection-load",
	Calls:   true,
	Culprit: "exporter",
	Draw: func(r *rand.Rand) Strength {
		return Strength{
			"clients": between(r, 10, 800), "client_lists_per_second": between(r, 2, 80),
			"infos_per_second": between(r, 2, 100),
		}
	},
	Prepare: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		return l.holdIdle(ctx, st.Server.Addr, s.int("clients"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Load(ctx, st.load("exporter", 2, s["client_lists_per_second"], traffic.Always("CLIENT", "LIST")))
		l.Load(ctx, st.load("exporter", 2, s["infos_per_second"], traffic.Always("INFO", "all")))
		return nil
	},
}

// monitors copy all commands to MONITOR clients.
var monitors = Fault{
	Name:  "introspection-load-monitor",
	Cause: "introspection-load",
	Needs: Needs{Topologies: []Topology{Standalone, Replicated, Clustered, Proxied, Namespaced}},
	Calls: true,
	Draw:  func(r *rand.Rand) Strength { return Strength{"monitors": math.Round(between(r, 1, 50))} },
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		for range s.int("monitors") {
			if _, err := l.discard(ctx, st.Server.Addr, "MONITOR\r\n"); err != nil {
				return err
			}
		}
		return nil
	},
}
