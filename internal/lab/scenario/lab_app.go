package scenario

import (
	"context"
	"errors"
	"fmt"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/step"
)

// AppSpec is an application of a scenario.
type AppSpec struct {
	Name    apps.Name
	Options apps.Options
	Cgroup  *fault.Cgroup // in which it is started, if any
	CPU     string        // CPUs that it may use, as taskset(1) lists them; empty: all
}

// App starts an application and waits for its first successful operation. It ends with the lab, and then writes to the
// lab's log what its users saw.
func (l *Lab) App(ctx context.Context, s AppSpec) (*apps.Running, error) {
	cache, err := apps.OpenCache("")
	if err != nil {
		return nil, err
	}
	program, err := cache.Get(ctx, s.Name, l.Log)
	if errors.Is(err, apps.ErrTool) || errors.Is(err, apps.ErrRegistry) {
		return nil, fmt.Errorf("%w: %w", fault.ErrCannot, err)
	}
	if err != nil {
		return nil, err
	}
	dir, err := l.processDir("app-" + string(s.Name))
	if err != nil {
		return nil, err
	}
	step.Say(ctx, "waiting for the first operation of %s", s.Name)
	r, err := program.Start(ctx, dir, s.Options, prefix(s.Cgroup, s.CPU)...)
	if errors.Is(err, apps.ErrUnsupported) {
		return nil, fmt.Errorf("%w: %w", fault.ErrCannot, err)
	}
	if err != nil {
		return nil, err
	}
	l.Defer(func(ctx context.Context) error {
		step.Say(ctx, "ending %s", s.Name)
		stats, err := r.Stop()
		l.Logf("application %s: %s", s.Name, stats)
		if errors.Is(err, apps.ErrEnded) {
			return fmt.Errorf("%w: %w", ErrNotMade, err)
		}
		if err != nil {
			l.Logf("%v", err) // a worker waits for its jobs, which a fault may hold up
		}
		return nil
	})
	return r, nil
}
