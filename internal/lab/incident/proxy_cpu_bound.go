package incident

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/traffic"
)

// proxyCPUBound and proxyCPUBoundEnvoy have more callers than the one thread of a proxy can serve, which reads and
// writes each call twice. It has a CPU of its own: nothing else is in its way.
var (
	proxyCPUBound = Incident{
		ID:    "proxy-cpu-bound",
		Cause: "proxy-cpu-bound",
		Title: "more pipelines of reads than twemproxy can serve, beside callers that come through HAProxy",
		Fixes: []string{"no-proxy"},
		Watch: 4 * time.Second, // nearly all calls are slow
		Make:  busyHop(Twemproxy),
	}
	proxyCPUBoundEnvoy = Incident{
		ID:    "proxy-cpu-bound-envoy",
		Cause: "proxy-cpu-bound",
		Title: "more pipelines of reads than one worker of Envoy can serve, beside callers through HAProxy",
		Fixes: []string{"no-proxy"},
		Watch: 4 * time.Second,
		Make:  busyHop(Envoy),
	}
)

func busyHop(proxy string) func(context.Context, *Lab) (Scene, error) {
	return func(ctx context.Context, l *Lab) (Scene, error) {
		h, err := l.hops(ctx, proxy)
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
	}
}

// ownCPU gives all threads of a process the second CPU, before all others.
func ownCPU(pid int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("%w: the threads of process %d: %w", fault.ErrCannot, pid, err)
	}
	var set unix.CPUSet
	set.Set(1)
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("%w: the second CPU for thread %d: %w", fault.ErrCannot, tid, err)
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, tid, -20); err != nil { // Linux has it of each thread
			return fmt.Errorf("%w: the priority of thread %d: %w", fault.ErrCannot, tid, err)
		}
	}
	return nil
}
