package apart

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// run: a process has the priority and the ambient capabilities of the thread that started it: this one is given up
// afterwards. The kernel kills the process when that thread ends, as when the agent is killed.
func run(c *exec.Cmd, l Limits, started func(pid int)) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		if l.Nice != 0 {
			_ = unix.Setpriority(unix.PRIO_PROCESS, 0, l.Nice)
		}
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		if err := c.Start(); err != nil {
			done <- fmt.Errorf("starting slowpath: %w", err)
			return
		}
		if started != nil {
			started(c.Process.Pid)
		}
		err := limit(c.Process.Pid, l)
		if err != nil {
			_ = c.Process.Kill()
		}
		done <- errors.Join(err, c.Wait())
	}()
	return <-done
}

// limit bounds what a process takes. Its address space is not bounded: a Go program reserves more than it uses.
func limit(pid int, l Limits) error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_DATA: uint64(l.Memory), unix.RLIMIT_FSIZE: uint64(l.File), unix.RLIMIT_CORE: 0,
	} {
		err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended already
			return fmt.Errorf("limiting slowpath: %w", err)
		}
	}
	return nil
}
