// Package memnet is a network in memory, for tests in a bubble of testing/synctest: its time stands still while a
// goroutine waits for a socket of the kernel.
package memnet

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// bufferBytes is how much an end of a connection may send before the other one reads.
const bufferBytes = 64 << 10

// Listen gives a listener that is open until the test ends. Whatever is dialled, dial reaches it.
func Listen(t testing.TB) (l net.Listener, dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	in := &listener{dialled: make(chan net.Conn), closed: make(chan struct{})}
	t.Cleanup(func() { _ = in.Close() })
	return in, func(ctx context.Context, _, _ string) (net.Conn, error) {
		one, other := pipe()
		select {
		case in.dialled <- other:
			return one, nil
		case <-in.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Serve has a handler answer HTTP until the test ends.
func Serve(t testing.TB, h http.Handler) (dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	l, dial := Listen(t)
	s := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { _ = s.Serve(l); close(ended) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return dial
}
