package scenario

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// manyClients is how many idle connections the scenario holds.
const manyClients = 15_000

// manyClientsOverhead holds 15 000 idle connections, which an exporter lists twice per second.
var manyClientsOverhead = Scenario{
	ID:    "many-clients-overhead",
	Cause: "many-clients-overhead",
	Title: "15 000 idle connections, and an exporter that sends CLIENT LIST twice per second",
	Fixes: []string{"info-clients"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if err := needFiles(manyClients + 1000); err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{Config: []string{fmt.Sprintf("maxclients %d", manyClients+1000)}})
		if err != nil {
			return Scene{}, err
		}
		if err := l.holdIdle(ctx, s.Addr, manyClients); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Mixed(10_000)})
		ask := []string{"CLIENT", "LIST"}
		if l.Fixed("info-clients") {
			ask = []string{"INFO", "clients"}
		}
		l.Every(ctx, 500*time.Millisecond, func(ctx context.Context) error {
			_, err := s.Do(ctx, ask...)
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// needFiles returns an error unless this process, and so the server that it starts, may have n open files.
func needFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("%w: %w", fault.ErrCannot, err)
	}
	if limit.Max < n {
		return fmt.Errorf("%w: it needs %d open files, the limit is %d; raise it with ulimit -Hn", fault.ErrCannot, n,
			limit.Max)
	}
	return nil
}
