package incident

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// manyClients is how many idle connections the incident holds.
const manyClients = 15_000

// manyClientsOverhead holds 15 000 idle connections, of which an exporter wants a list twice per second.
var manyClientsOverhead = Incident{
	ID:    "many-clients-overhead",
	Cause: "many-clients-overhead",
	Title: "15 000 idle connections, and an exporter that asks CLIENT LIST twice per second",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if err := needFiles(manyClients + 1000); err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{Config: []string{fmt.Sprintf("maxclients %d", manyClients+1000)}})
		if err != nil {
			return Scene{}, err
		}
		if err := l.hold(ctx, s.Addr, manyClients); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		l.Every(ctx, 500*time.Millisecond, func(ctx context.Context) error {
			_, err := s.Do(ctx, "CLIENT", "LIST")
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// needFiles says whether this process, and so the server that it starts, may have n open files.
func needFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("%w: %w", ErrCannot, err)
	}
	if limit.Max < n {
		return fmt.Errorf("%w: it needs %d open files, the limit is %d; raise it with ulimit -Hn", ErrCannot, n,
			limit.Max)
	}
	return nil
}

// hold opens n connections and keeps them idle until the incident ends. They come from several addresses of loopback,
// since one has about 28 000 ports.
func (l *Lab) hold(ctx context.Context, addr string, n int) error {
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
			from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+d))}
			dialer := net.Dialer{LocalAddr: from, Timeout: 10 * time.Second}
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
