// Package apart runs slowpath itself in a process of its own, which has no rights but those of the agent's user.
package apart

import (
	"os"
	"os/exec"
)

// Limits of a process.
type Limits struct {
	Nice   int   // its nice value; 0: that of the agent
	Memory int64 // bytes of data
	File   int64 // bytes of a file that it writes; 0: it writes none
}

// ownProgram is the program that runs, also after an upgrade has replaced its file.
const ownProgram = "/proc/self/exe"

// Executable is slowpath.
func Executable() string {
	if _, err := os.Stat(ownProgram); err == nil {
		return ownProgram
	}
	path, err := os.Executable()
	if err != nil {
		return ownProgram // the error of the start names it
	}
	return path
}

// Environment is all that a process is told of the agent's environment, and some more variables.
func Environment(more ...string) []string {
	for _, name := range []string{"TZ", "LANG", "LC_ALL", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			more = append(more, name+"="+v)
		}
	}
	return more
}

// Run runs a process to its end, within limits and without capabilities. It ends with this one. started, if not nil, is
// told its process id.
func Run(c *exec.Cmd, l Limits, started func(pid int)) error { return run(c, l, started) }
