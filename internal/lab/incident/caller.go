package incident

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/wire/resp"
)

// caller is one connection of a client in this process, for incidents in which it matters what its socket does.
type caller struct {
	*net.TCPConn
	in *resp.Reader
}

func dialCaller(ctx context.Context, d net.Dialer, addr string) (*caller, error) {
	d.Timeout, d.KeepAlive = 5*time.Second, -1
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("a caller of the incident: %w", err)
	}
	return &caller{c.(*net.TCPConn), resp.NewReader(c, resp.DefaultLimits)}, nil
}

// endWith makes what the caller waits for fail when ctx ends, until it is undone.
func (c *caller) endWith(ctx context.Context) (undo func() bool) {
	// fails on a closed connection, which waits for nothing
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// ask sends one command and waits for its reply.
func (c *caller) ask(args ...string) error {
	if _, err := c.Write(resp.AppendCommand(nil, args...)); err != nil {
		return err
	}
	return c.reply()
}

// reply waits for one reply; one that is an error is one.
func (c *caller) reply() error {
	sum, err := c.in.Skip()
	if err != nil {
		return err
	}
	return sum.Err()
}

// repeat calls use, again and again with a pause of about gap, on a connection that it opens before it returns. That
// ends with the incident, or with an error, which goes to the log.
func (l *Lab) repeat(ctx context.Context, d net.Dialer, addr string, gap time.Duration, use func(*caller) error) error {
	c, err := dialCaller(ctx, d, addr)
	if err != nil {
		return err
	}
	l.Defer(func(context.Context) error { c.Close(); return nil })
	l.callers(ctx, 1, gap, func(ctx context.Context) error {
		defer c.endWith(ctx)()
		return use(c)
	})
	return nil
}

// callers runs n goroutines that call and pause, for half of gap to one and a half so that they do not march in step.
// They end with the incident, each before that at its first error.
func (l *Lab) callers(ctx context.Context, n int, gap time.Duration, call func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			for pause(ctx, time.Duration((0.5+rand.Float64())*float64(gap))) {
				if err := call(ctx); err != nil {
					if ctx.Err() == nil {
						fmt.Fprintf(l.Log, "incident: a caller gave up: %v\n", err)
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

// pause reports whether the incident goes on after d.
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
