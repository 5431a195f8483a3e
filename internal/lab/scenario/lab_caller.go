package scenario

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/wire/resp"
)

// caller is one client connection of this process, for scenarios in which it matters what the socket does.
type caller struct {
	*net.TCPConn
	in *resp.Reader
}

func dialCaller(ctx context.Context, d net.Dialer, addr string) (*caller, error) {
	d.Timeout, d.KeepAlive = cmp.Or(d.Timeout, 5*time.Second), -1
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("a caller of the scenario: %w", err)
	}
	return &caller{c.(*net.TCPConn), resp.NewReader(c, resp.DefaultLimits)}, nil
}

// endWith makes reads and writes of the caller fail when ctx ends, until it is undone.
func (c *caller) endWith(ctx context.Context) (undo func() bool) {
	// fails on a closed connection, which waits for nothing
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// call sends one command and waits for its reply.
func (c *caller) call(args ...string) error {
	if _, err := c.Write(resp.AppendCommand(nil, args...)); err != nil {
		return err
	}
	return c.reply()
}

// reply waits for one reply. An error reply is an error.
func (c *caller) reply() error {
	sum, err := c.in.Skip()
	if err != nil {
		return err
	}
	return sum.Err()
}

// startCaller opens a connection and repeats calls on it, with pauses of about gap. The caller ends with the scenario,
// or at its first error, which goes to the log.
func (l *Lab) startCaller(ctx context.Context, d net.Dialer, addr string, gap time.Duration,
	calls func(*caller) error,
) error {
	c, err := dialCaller(ctx, d, addr)
	if err != nil {
		return err
	}
	l.Defer(func(context.Context) error { c.Close(); return nil })
	l.startCallers(ctx, 1, gap, func(ctx context.Context) error {
		defer c.endWith(ctx)()
		return calls(c)
	})
	return nil
}

// startCallers runs n goroutines that pause and call. The pauses are between half and one and a half of gap, so that
// the goroutines do not call at the same time. Each ends with the scenario, or at its first error.
func (l *Lab) startCallers(ctx context.Context, n int, gap time.Duration, call func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			for pause(ctx, time.Duration((0.5+rand.Float64())*float64(gap))) {
				if err := call(ctx); err != nil {
					if ctx.Err() == nil {
						l.Logf("scenario: a caller gave up: %v", err)
					}
					return
				}
			}
		}()
	}
	l.Defer(func(context.Context) error {
		cancel()
		for range n {
			<-done
		}
		return nil
	})
}
