package incident

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// storm opens n connections at the same moment, again and again; each asks PING once and leaves. Those that the server
// has not let in after 5 s give up, so that at most a few thousand wait at a time.
func (l *Lab) storm(ctx context.Context, addr string, n int, gap time.Duration) {
	var wg sync.WaitGroup
	l.Defer(func(context.Context) error { wg.Wait(); return nil })
	l.Every(ctx, gap, func(ctx context.Context) error {
		for range n {
			wg.Go(func() { _ = pingOnce(ctx, addr, nil) }) // that some fail is the incident
		}
		return nil
	})
}

// pingOnce opens a connection, with TLS where config is given, asks PING and closes it.
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
