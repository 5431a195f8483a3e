package incident

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// serverCPUContention pins the server and three busy processes to one CPU.
var serverCPUContention = Incident{
	ID:    "server-cpu-contention",
	Cause: "server-cpu-contention",
	Title: "three busy processes on the only CPU that the server may use",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		for range 3 {
			if err := l.spin(0); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// spin runs a process that keeps a CPU busy. It ends with the lab, or by its own limit of CPU time if the lab is
// killed.
func (l *Lab) spin(cpu int) error {
	c := exec.Command("taskset", "-c", itoa(cpu), "sh", "-c", "ulimit -t 120; while :; do :; done")
	// each in its own session, so that the scheduler's autogroup gives each an equal share
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("%w: starting a busy process: %w", fault.ErrCannot, err)
	}
	l.Defer(func(context.Context) error {
		_ = c.Process.Kill() // it may have ended by its own limit
		_ = c.Wait()         // killed
		return nil
	})
	return nil
}
