package scenario

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/lab/fleet"
)

// serverRestarted kills a server during the watch, and starts it again after a second.
var serverRestarted = Scenario{
	ID:       "server-restarted",
	Cause:    "server-restarted",
	Title:    "kill -9 of the server during the watch, started again after a second",
	Unproven: "after the step the server still restarts, though without its callers: that is found again",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.restartOnce(ctx, s, time.Second)
	},
}

// serverRestartedLoading is a server whose data takes seconds to load: calls are refused with LOADING meanwhile.
var serverRestartedLoading = Scenario{
	ID:    "server-restarted-loading",
	Cause: "server-restarted",
	Title: "kill -9 of a server with three million keys during the watch, started again at once: it loads them",
	Watch: 10 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		if err := fillKeys(ctx, s, 3_000_000); err != nil {
			return Scene{}, err
		}
		if err := save(ctx, s); err != nil { // it loads this file when it starts
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, l.restartOnce(ctx, s, 0)
	},
}

// restartOnce kills a server during the watch, and starts it again after a pause.
func (l *Lab) restartOnce(ctx context.Context, s *fleet.Instance, after time.Duration) error {
	l.onceAfter(ctx, afterStart, func(ctx context.Context) error {
		if err := s.Kill(ctx); err != nil {
			return err
		}
		if !pause(ctx, after) {
			return ctx.Err()
		}
		if err := s.Restart(ctx); err != nil {
			return fmt.Errorf("starting it again: %w", err)
		}
		return nil
	})
	return nil
}
