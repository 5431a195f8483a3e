package scenario

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// connectBursts opens n connections at the same time, again and again; each sends PING once and closes. A connection
// that the server has not accepted after 5 s gives up, so that at most a few thousand wait at a time.
func (l *Lab) connectBursts(ctx context.Context, addr string, n int, gap time.Duration) {
	var wg sync.WaitGroup
	l.Defer(func(context.Context) error { wg.Wait(); return nil })
	l.Every(ctx, gap, func(ctx context.Context) error {
		for range n {
			wg.Go(func() { _ = pingOnce(ctx, addr, nil) }) // that some fail is the scenario
		}
		return nil
	})
}

// pingOnce opens a connection, with TLS if config is not nil, sends PING and closes it.
func pingOnce(ctx context.Context, addr string, config *tls.Config) error {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if config != nil {
		c = tls.Client(c, config)
	}
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(c, reply); err != nil {
		return fmt.Errorf("PING on a new connection: %w", err)
	}
	return nil
}

// holdIdle opens n connections and keeps them idle until the scenario ends. To a server on loopback they come
// from several addresses, since one address has about 28 000 ports.
func (l *Lab) holdIdle(ctx context.Context, addr string, n int) error {
	conns := make([]net.Conn, n)
	l.Defer(func(context.Context) error {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return nil
	})
	const dialers = 8
	errs := make(chan error, dialers)
	var wg sync.WaitGroup
	for d := range dialers {
		wg.Go(func() {
			dialer := net.Dialer{Timeout: 10 * time.Second}
			if strings.HasPrefix(addr, "127.") {
				dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+d))}
			}
			for i := d; i < n; i += dialers {
				c, err := dialer.DialContext(ctx, "tcp", addr)
				if err != nil {
					errs <- err
					return
				}
				conns[i] = c
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("opening %d connections to %s: %w", n, addr, err)
	default:
		return nil
	}
}
