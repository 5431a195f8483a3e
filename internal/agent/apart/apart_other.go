//go:build !linux

package apart

import "os/exec"

// run: its memory is bounded by GOMEMLIMIT alone.
func run(c *exec.Cmd, _ Limits, started func(pid int)) error {
	if err := c.Start(); err != nil {
		return err
	}
	if started != nil {
		started(c.Process.Pid)
	}
	return c.Wait()
}
