package incident

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// slowAccept puts a proxy before a server that needs a while for each new connection, and passes on at once what is
// said on it later: as one that asks another service first who may come in. It returns the proxy's address.
func (l *Lab) slowAccept(ctx context.Context, addr string, delay time.Duration) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("starting the proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			running.Go(func() { passOn(ctx, in, addr, delay) })
		}
	})
	l.Defer(func(context.Context) error {
		cancel()
		err := listener.Close()
		running.Wait()
		return err
	})
	return listener.Addr().String(), nil
}

// passOn ends with the context, or when one side has closed.
func passOn(ctx context.Context, in net.Conn, addr string, delay time.Duration) {
	defer in.Close()
	if !pause(ctx, delay) {
		return
	}
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return // the client sees its connection closed
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { in.Close(); out.Close() })()
	var both sync.WaitGroup
	both.Go(func() { copyAll(out, in); out.Close() })
	copyAll(in, out)
	in.Close()
	both.Wait()
}

// copyAll reads and writes, as most proxies do, where io.Copy between two connections would splice. An end is an end,
// whatever the reason.
func copyAll(to io.Writer, from io.Reader) {
	_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
}
