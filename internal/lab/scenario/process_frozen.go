package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// processFrozen stops the server with SIGSTOP for 400 ms, every two seconds.
var processFrozen = Scenario{
	ID:    "process-frozen",
	Cause: "process-frozen",
	Title: "SIGSTOP of the server for 400 ms every two seconds",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		if err := freezePulses.On(ctx, l, &Stage{Server: s}, Strength{"every_ms": 2000, "stop_ms": 400}); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, nil
	},
}

// processFrozenProxy and processFrozenEnvoy stop a proxy in the middle of the way.
var (
	processFrozenProxy = Scenario{
		ID:    "process-frozen-proxy",
		Cause: "process-frozen",
		Title: "SIGSTOP of twemproxy between HAProxy and the server, for 200 ms each second",
		Make:  frozenHop(Twemproxy),
	}
	processFrozenEnvoy = Scenario{
		ID:    "process-frozen-envoy",
		Cause: "process-frozen",
		Title: "SIGSTOP of Envoy between HAProxy and the server, for 200 ms each second",
		Make:  frozenHop(Envoy),
	}
)

func frozenHop(proxy string) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		h, err := l.hops(ctx, proxy)
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: h[0].Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		return h.scene(), freezePulses.On(ctx, l, &Stage{Server: h[1]}, Strength{"every_ms": 1000, "stop_ms": 200})
	}
}

// freezePulses stops the server again and again.
var freezePulses = Fault{
	Name:  "process-frozen",
	Cause: "process-frozen",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"every_ms": between(r, 300, 600), "stop_ms": between(r, 1, 250)}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		pid := st.Server.PID
		l.Defer(func(context.Context) error { return syscall.Kill(pid, syscall.SIGCONT) })
		l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				return fmt.Errorf("stopping %d: %w", pid, err)
			}
			defer syscall.Kill(pid, syscall.SIGCONT)
			pause(ctx, s.millis("stop_ms"))
			return nil
		})
		return nil
	},
}

// processFrozenSince stops the server for longer than the watch: no call gets a reply.
var processFrozenSince = Scenario{
	ID:    "process-frozen-since",
	Cause: "process-frozen",
	Title: "SIGSTOP of the server before doctor starts, until it ends",
	Fixes: []string{"let-it-go-on"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.freeze(s)
	},
}
