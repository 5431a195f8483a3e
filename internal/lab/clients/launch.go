package clients

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long a program may take to its first call, in which a JVM or Python starts, and to its end, in which it closes
// its connections.
const (
	readyTimeout = 30 * time.Second
	endTimeout   = 10 * time.Second
)

// ErrDuration says that a run needs a duration.
var ErrDuration = errors.New("a run needs a duration")

// Run runs the program for Options.Warmup and Duration and returns its summary. It kills a program that does not end in
// time. If ctx ends first, the summary is of the time until then. There is also a summary if all calls failed.
func (p Program) Run(ctx context.Context, dir string, o Options, prefix ...string) (Summary, error) {
	if o.Duration <= 0 {
		return Summary{}, fmt.Errorf("running the client %s: %w", p.Name, ErrDuration)
	}
	r, err := p.Start(dir, o, prefix...)
	if err != nil {
		return Summary{}, err
	}
	late := time.NewTimer(readyTimeout + o.Warmup + o.Duration + endTimeout)
	defer late.Stop()
	select {
	case <-r.Exited():
	case <-ctx.Done():
	case <-late.C:
	}
	return r.End(endTimeout)
}

// Ask starts the program as an HTTP service, and makes the calls through it, Options.Workers side by side. They are
// those that users saw, the pool and its errors those that the library reports.
func (p Program) Ask(ctx context.Context, dir string, o Options) (Summary, error) {
	q := Requests{Connections: o.Workers, Warmup: o.Warmup, Duration: o.Duration}
	o.Workers, o.Duration = 0, 0
	service, err := p.Serve(ctx, dir, o)
	if err != nil {
		return Summary{}, err
	}
	seen, err := q.Make(ctx, service.Addr())
	own, endErr := service.End(endTimeout)
	seen.Library, seen.Dials, seen.Pool, seen.CPU = own.Library, own.Dials, own.Pool, own.CPU
	return seen, errors.Join(err, endErr)
}

// Serve starts the program as an HTTP service on a free port of loopback and waits until it listens. All requests share
// one client, and each makes a call of the mix. End it with Process.Stop.
func (p Program) Serve(ctx context.Context, dir string, o Options, prefix ...string) (*Process, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	r, err := p.Start(dir, o, prefix...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := r.AwaitReady(ctx); err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}
