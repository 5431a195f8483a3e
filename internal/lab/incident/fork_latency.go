package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// forkLatency takes a snapshot of 1.5 GB of memory again and again; each fork copies its page tables.
var forkLatency = Incident{
	ID:    "fork-latency",
	Cause: "fork-latency",
	Title: "BGSAVE of 1.5 GB, one after the other",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		// The child on the other CPU, where there is one: it is the fork that is to be seen, not the child's use of the CPU.
		s, err := l.Start(ctx, fleet.Spec{Config: l.since(6, 0, "server_cpulist 0", "bgsave_cpulist 1")})
		if err != nil {
			return Scene{}, err
		}
		if err := fillBig(ctx, s, "blob:", 1500, 1<<20); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Get(10_000)})
		l.Every(ctx, 300*time.Millisecond, func(ctx context.Context) error {
			_, _ = s.Do(ctx, "BGSAVE") // refused while one is in progress
			return nil
		})
		return Scene{Target: s.Addr}, nil
	},
}
