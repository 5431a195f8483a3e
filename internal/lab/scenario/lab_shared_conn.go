package scenario

import (
	"context"
	"fmt"
	"net"
	"sync"

	"slowpath/internal/wire/resp"
)

// sharedConn is a connection that many callers share, as Lettuce, StackExchange.Redis and ioredis do: commands are sent
// as they come, and replies come in the same order. A caller waits for all replies before its own.
type sharedConn struct {
	*caller
	sending sync.Mutex      // held while a command is queued and written
	pending chan chan error // a channel for each reply that has not come, in the order of the commands
}

// maxPending bounds the calls in flight; further callers wait.
const maxPending = 1024

// shareConn opens a shared connection that ends with the lab.
func (l *Lab) shareConn(ctx context.Context, addr string) (*sharedConn, error) {
	c, err := dialCaller(ctx, net.Dialer{}, addr)
	if err != nil {
		return nil, err
	}
	s := &sharedConn{caller: c, pending: make(chan chan error, maxPending)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for reply := range s.pending {
			reply <- s.reply()
		}
	}()
	l.Defer(func(context.Context) error {
		c.Close() // nobody sends any more: the callers ended before
		close(s.pending)
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
	s.pending <- reply
	_, err := s.Write(resp.AppendCommand(nil, args...))
	return err
}
