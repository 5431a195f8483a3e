package scenario

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/traffic"
)

// proxyCPUBound has more callers than the one thread of twemproxy can serve, which reads and writes each call twice. It
// has a CPU of its own: nothing else is in its way.
var proxyCPUBound = Scenario{
	ID:    "proxy-cpu-bound",
	Cause: "proxy-cpu-bound",
	Title: "more pipelines of reads than twemproxy can serve, beside callers that come through HAProxy",
	Fixes: []string{"no-proxy"},
	Watch: 4 * time.Second, // nearly all calls are slow
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		h, err := l.hops(ctx, Twemproxy)
		if err != nil {
			return Scene{}, err
		}
		if err := ownCPU(h[1].PID); err != nil {
			return Scene{}, err
		}
		if l.Fixed("no-proxy") {
			h = h[2:]
		}
		inner := h[min(1, len(h)-1)]
		l.Load(ctx, traffic.Spec{
			Addr: inner.Addr, Conns: 50, Pipeline: 64, Rate: 250_000, Command: traffic.Mixed(10_000),
		})
		l.Load(ctx, traffic.Spec{Addr: h[0].Addr, Conns: 4, Rate: 200, Command: traffic.Mixed(10_000)})
		return h.scene(), nil
	},
}

// ownCPU gives a process the second CPU, before all others.
func ownCPU(pid int) error {
	var set unix.CPUSet
	set.Set(1)
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		return fmt.Errorf("%w: the second CPU for process %d: %w", fault.ErrCannot, pid, err)
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, pid, -20); err != nil {
		return fmt.Errorf("%w: the priority of process %d: %w", fault.ErrCannot, pid, err)
	}
	return nil
}
