package clients

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long a program may take until its first call, and after its end: a JVM or a Python starts, and connections are
// closed.
const (
	readyPatience = 30 * time.Second
	endPatience   = 10 * time.Second
)

// ErrDuration says that a run needs a time to end.
var ErrDuration = errors.New("a run needs a duration")

// Run lets the program make its calls for Options.Warmup and Duration, and returns what it has measured. What does not
// end in time is killed. A context that ends first ends the run; the summary is then of the time until there. Without
// any successful call there is a summary, too: of errors.
func (p Program) Run(ctx context.Context, dir string, o Options, lead ...string) (Summary, error) {
	if o.Duration <= 0 {
		return Summary{}, fmt.Errorf("running the client %s: %w", p.Name, ErrDuration)
	}
	r, err := p.Start(dir, o, lead...)
	if err != nil {
		return Summary{}, err
	}
	late := time.NewTimer(readyPatience + o.Warmup + o.Duration + endPatience)
	defer late.Stop()
	select {
	case <-r.Exited():
	case <-ctx.Done():
	case <-late.C:
	}
	s, err := r.Stop(endPatience)
	if err != nil {
		r.Kill()
	}
	return s, err
}

// Serve starts the program as an HTTP service on loopback, at a port that is free, and waits until it listens: one
// client for all, a call of the mix per request. Stop it with Process.Stop.
func (p Program) Serve(ctx context.Context, dir string, o Options, lead ...string) (*Process, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	r, err := p.Start(dir, o, lead...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if err := r.AwaitReady(ctx); err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}
