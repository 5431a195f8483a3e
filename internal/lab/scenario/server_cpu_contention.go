package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// serverCPUContention pins the server and three busy processes to one CPU.
var serverCPUContention = Scenario{
	ID:    "server-cpu-contention",
	Cause: "server-cpu-contention",
	Title: "three busy processes on the only CPU that the server may use",
	Fixes: []string{"move-other-processes"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{CPUs: []int{0}})
		if err != nil {
			return Scene{}, err
		}
		if err := busyNeighbours.On(ctx, l, nil, Strength{"processes": 3}); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// busyNeighbours runs busy processes on the CPU of the server.
var busyNeighbours = Fault{
	Name:  "server-cpu-contention",
	Cause: "server-cpu-contention",
	Needs: Needs{OneCPU: true},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"processes": float64(1 + r.IntN(3)), "share_percent": between(r, 3, 100)}
	},
	On: func(_ context.Context, l *Lab, _ *Stage, s Strength) error {
		var g *fault.Cgroup
		if share := s["share_percent"]; share > 0 && share < 100 {
			var err error
			if g, err = fault.CPUCgroup(l, "neighbours", time.Duration(share*float64(time.Millisecond))); err != nil {
				return err
			}
		}
		for range s.int("processes") {
			if err := l.spin("0", g); err != nil {
				return err
			}
		}
		return nil
	},
}

// Spin runs a process that uses a share of a CPU, wherever the kernel puts it.
func (l *Lab) Spin(share float64) error {
	g, err := fault.CPUCgroup(l, "noise", time.Duration(share*float64(100*time.Millisecond)))
	if err != nil {
		return err
	}
	return l.spin(fmt.Sprintf("0-%d", runtime.NumCPU()-1), g)
}

// spin runs a process that keeps a CPU busy. It ends with the lab, or by its own limit of CPU time if the lab is
// killed. CPUs are as taskset(1) lists them; the cgroup, if any, may have a quota.
func (l *Lab) spin(cpus string, g *fault.Cgroup) error {
	argv := append(ClientSpec{Cgroup: g, CPU: cpus}.prefix(), "sh", "-c", "ulimit -t 120; while :; do :; done")
	c := exec.Command(argv[0], argv[1:]...)
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
