package scenario

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/traffic"
	"slowpath/internal/source/host"
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
		if l.Fixed("no-proxy") {
			return h.scene(), nil
		}
		return h.scene(), isBusy(ctx, inner.PID)
	},
}

// isBusy looks for two seconds whether a process fills its CPU: where the load and the server share the only other CPU,
// they may be slower than the proxy, and then it is not bound by its own.
func isBusy(ctx context.Context, pid int) error {
	const least = 0.8 // of the time
	m, err := host.NewMeter(nil, pid)
	if err != nil {
		return err
	}
	pause(ctx, time.Second) // the load begins
	before, err := m.Read()
	if err != nil {
		return err
	}
	began := time.Now()
	pause(ctx, time.Second)
	after, err := m.Read()
	if err != nil {
		return err
	}
	if ran := after.Threads[0].Run - before.Threads[0].Run; ran.Seconds() < least*time.Since(began).Seconds() {
		return fmt.Errorf("%w: the load of this machine fills only %.0f %% of the proxy's CPU", fault.ErrCannot,
			ran.Seconds()/time.Since(began).Seconds()*100)
	}
	return nil
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
