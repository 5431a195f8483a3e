package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/lab/traffic"
)

// Lab is what scenarios are made with: servers, loads, client processes, callers, and the log. What it starts is in the
// registry before it exists, so that the next lab removes it if this one is killed.
type Lab struct {
	Fleet    *fleet.Fleet
	Registry *fleet.Registry
	Cache    *servers.Cache
	Server   servers.Name // version that scenarios run against
	Log      io.Writer
	fix      *fixed // the step with which it is made, if any
	cleanup  []func(context.Context) error
}

// New opens a lab over the default registry and cache.
func New(server servers.Name, log io.Writer) (*Lab, error) {
	reg, err := fleet.OpenRegistry("")
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(reg)
	if err != nil {
		return nil, err
	}
	cache, err := servers.OpenCache("")
	if err != nil {
		return nil, err
	}
	return &Lab{Fleet: f, Registry: reg, Cache: cache, Server: server, Log: log}, nil
}

// Close removes and ends everything, in reverse order. The error is ErrNotMade if something had ended too early; any
// other error does not concern what doctor has seen.
func (l *Lab) Close(ctx context.Context) error {
	var errs []error
	for i := len(l.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, l.cleanup[i](ctx))
	}
	l.cleanup = nil
	return errors.Join(errs...)
}

// Defer adds a step of cleaning up.
func (l *Lab) Defer(f func(context.Context) error) { l.cleanup = append(l.cleanup, f) }

// Register records a thing before it is made, and removes it at the end.
func (l *Lab) Register(e fleet.Entry) error {
	added, err := l.Registry.Add(e)
	if err != nil {
		return err
	}
	l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, added) })
	return nil
}

// Logf writes a line to the log.
func (l *Lab) Logf(format string, args ...any) { fmt.Fprintf(l.Log, format+"\n", args...) }

// Part is a lab that ends just before this one, or earlier. What is started in it may be started from another
// goroutine.
func (l *Lab) Part() *Lab {
	in := *l
	in.cleanup = nil
	l.Defer(in.Close)
	return &in
}

// Start runs one server for the scenario. A Spec without Config lines has no persistence.
func (l *Lab) Start(ctx context.Context, spec fleet.Spec) (*fleet.Instance, error) {
	bin, err := l.Cache.Get(ctx, l.Server, l.Log)
	if err != nil {
		return nil, err
	}
	if spec.TLS && !bin.TLS {
		return nil, fmt.Errorf("%w: %s is built without TLS", fault.ErrCannot, bin.Name)
	}
	i, err := l.Fleet.Start(ctx, bin, spec)
	if err != nil {
		return nil, err
	}
	l.Defer(i.Stop)
	return i, nil
}

// StartOn starts a server that keeps its append-only file on a slow disk.
func (l *Lab) StartOn(ctx context.Context, d *fault.SlowDisk, config ...string) (*fleet.Instance, error) {
	s, err := l.Start(ctx, fleet.Spec{
		AOF: true, CgroupProcs: []string{d.Procs()},
		Config: append([]string{"dir " + d.Mount, "auto-aof-rewrite-percentage 0"}, config...),
	})
	if err != nil {
		return nil, err
	}
	l.Defer(func(context.Context) error { return d.Unlimit() })
	return s, nil
}

// before reports whether the lab's server is older than a version of Redis. Every Valkey is newer than Redis 7.2.
func (l *Lab) before(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(string(l.Server), "redis-%d.%d", &a, &b); err != nil {
		return false
	}
	return a < major || a == major && b < minor
}

// since returns lines of redis.conf that came with a version, if the lab's server has it.
func (l *Lab) since(major, minor int, lines ...string) []string {
	if l.before(major, minor) {
		return nil
	}
	return lines
}

// Load runs traffic until the scenario ends.
func (l *Lab) Load(ctx context.Context, s traffic.Spec) {
	step.Say(ctx, "making calls")
	load := traffic.Start(context.WithoutCancel(ctx), s)
	l.Defer(func(context.Context) error {
		load.Stop()
		if err := load.Err(); err != nil {
			l.Logf("load: %d replies, %d failures, last: %v", load.Sent(), load.Failed(), err)
		}
		return nil
	})
}

// Every repeats an action from now until the scenario ends. Its errors go to the log.
func (l *Lab) Every(ctx context.Context, gap time.Duration, action func(context.Context) error) {
	l.run(ctx, func(ctx context.Context) {
		tick := time.NewTicker(gap)
		defer tick.Stop()
		for {
			l.try(ctx, action)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// everyAfter is Every whose first action comes after the gap.
func (l *Lab) everyAfter(ctx context.Context, gap time.Duration, action func(context.Context) error) {
	first := true
	l.Every(ctx, gap, func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		return action(ctx)
	})
}

// onceAfter does something once, after a wait. Its error goes to the log.
func (l *Lab) onceAfter(ctx context.Context, wait time.Duration, action func(context.Context) error) {
	l.run(ctx, func(ctx context.Context) {
		if pause(ctx, wait) {
			l.try(ctx, action)
		}
	})
}

// run runs f in a goroutine that ends with the scenario.
func (l *Lab) run(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(step.With(context.WithoutCancel(ctx), nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	l.Defer(func(context.Context) error { cancel(); <-done; return nil })
}

// try logs the error of an action, unless the scenario has ended.
func (l *Lab) try(ctx context.Context, action func(context.Context) error) {
	if err := action(ctx); err != nil && ctx.Err() == nil {
		l.Logf("scenario: %v", err)
	}
}

// pause waits, and reports whether the scenario goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
