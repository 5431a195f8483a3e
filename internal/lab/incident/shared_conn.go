package incident

import (
	"context"
	"fmt"
	"net"
	"sync"

	"slowpath/internal/wire/resp"
)

// sharedConn is a connection that many callers share, as Lettuce, StackExchange.Redis or ioredis have it: commands go
// out as they come, and replies come back in their order. Who waits for a reply waits for all before it.
type sharedConn struct {
	*caller
	sending sync.Mutex // held while a command takes its place in the line and is written
	line    chan chan error
}

// lineLength bounds the calls in flight; a caller beyond it waits for its place.
const lineLength = 1024

// share opens a shared connection that ends with the lab.
func (l *Lab) share(ctx context.Context, addr string) (*sharedConn, error) {
	c, err := dialCaller(ctx, net.Dialer{}, addr)
	if err != nil {
		return nil, err
	}
	s := &sharedConn{caller: c, line: make(chan chan error, lineLength)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for reply := range s.line {
			reply <- s.reply()
		}
	}()
	l.Defer(func(context.Context) error {
		c.Close() // nobody sends any more: the callers ended before
		close(s.line)
		<-read
		return nil
	})
	return s, nil
}

// do sends a command and waits for its reply, or until ctx ends.
func (s *sharedConn) do(ctx context.Context, args ...string) error {
	reply := make(chan error, 1)
	if err := s.send(reply, args); err != nil {
		return fmt.Errorf("%s on the shared connection: %w", args[0], err)
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sharedConn) send(reply chan error, args []string) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.line <- reply
	_, err := s.Write(resp.AppendCommand(nil, args...))
	return err
}
