package incident

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// processFrozen stops the server with SIGSTOP for 400 ms, every two seconds.
var processFrozen = Incident{
	ID:    "process-frozen",
	Cause: "process-frozen",
	Title: "SIGSTOP of the server for 400 ms every two seconds",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		l.Defer(func(context.Context) error { return syscall.Kill(s.PID, syscall.SIGCONT) })
		l.Every(ctx, 2*time.Second, func(ctx context.Context) error {
			if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
				return fmt.Errorf("stopping %d: %w", s.PID, err)
			}
			defer syscall.Kill(s.PID, syscall.SIGCONT)
			select {
			case <-ctx.Done():
			case <-time.After(400 * time.Millisecond):
			}
			return nil
		})
		return Scene{Target: s.Addr}, nil
	},
}

// processFrozenSince stops the server for longer than the watch: no call gets a reply.
var processFrozenSince = Incident{
	ID:    "process-frozen-since",
	Cause: "process-frozen",
	Title: "SIGSTOP of the server before doctor starts, until it ends",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.freeze(s)
	},
}
