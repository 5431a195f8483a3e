package incident

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// clientSpec is a client process of an incident.
type clientSpec struct {
	Program clients.Name
	Options clients.Options
	Cgroup  *cpuCgroup // it is started in, if any
	CPU     string     // taskset(1) list of CPUs that it may use, if any
	Lead    []string   // command that executes it, keeping the pid, if any
}

// How long a client may take to its first successful call, of which filling a heap is the most, and to its end.
const (
	clientReady = 30 * time.Second
	clientEnd   = 3 * time.Second
)

// Client starts a client process and waits for its first reply. It ends with the lab: its standard input is a pipe of
// this process, and it is in the registry by its directory. At its end the lab's log has what it measured itself, which
// says that the incident was one without asking the tool that is graded by it.
func (l *Lab) Client(ctx context.Context, s clientSpec) error {
	_, err := l.ClientProcess(ctx, s)
	return err
}

// ClientProcess is Client, for who has to know more of the process.
func (l *Lab) ClientProcess(ctx context.Context, s clientSpec) (*clients.Process, error) {
	cache, err := clients.OpenCache("")
	if err != nil {
		return nil, err
	}
	program, err := cache.Get(ctx, s.Program, l.Log)
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	if err != nil {
		return nil, err
	}
	dir, err := l.clientDir(s.Program)
	if err != nil {
		return nil, err
	}
	c, err := program.Start(dir, s.Options, s.lead()...)
	if err != nil {
		return nil, err
	}
	l.Defer(func(context.Context) error {
		sum, err := c.Stop(clientEnd)
		if err == nil {
			fmt.Fprintf(l.Log, "client %s: %s\n", s.Program, sum)
		}
		return err
	})
	ctx, cancel := context.WithTimeout(ctx, clientReady)
	defer cancel()
	return c, c.AwaitReady(ctx)
}

// clientDirs counts those that this process made: an incident may have several clients.
var clientDirs atomic.Int32

// clientDir makes the directory that a client works in, by which the next lab finds it should this one be killed.
func (l *Lab) clientDir(name clients.Name) (string, error) {
	root, err := filepath.EvalSymlinks(os.TempDir()) // /proc/PID/cwd, by which it is found, has none either
	if err != nil {
		return "", err
	}
	tmp := filepath.Join(root, fmt.Sprintf("slowpath-client-%s-%d-%d", name, os.Getpid(), clientDirs.Add(1)))
	dirEntry, err := l.Registry.Add(fleet.Entry{Kind: fleet.KindDir, Path: tmp})
	if err != nil {
		return "", err
	}
	processEntry, err := l.Registry.Add(fleet.Entry{Kind: fleet.KindProcess, Path: tmp})
	if err != nil {
		return "", err
	}
	l.Defer(func(ctx context.Context) error { return l.Registry.Release(ctx, processEntry, dirEntry) })
	return tmp, os.Mkdir(tmp, 0o700)
}

// lead is what is executed before the program, keeping the pid: its threads inherit all of it.
func (s clientSpec) lead() []string {
	var argv []string
	if s.Cgroup != nil {
		argv = append(argv, "sh", "-c", `echo $$ > "$1" || exit 70; shift; exec "$@"`, "sh", s.Cgroup.Procs())
	}
	if s.CPU != "" {
		argv = append(argv, "taskset", "-c", s.CPU)
	}
	return append(argv, s.Lead...)
}

// otherCPU is a CPU for clients whose server has CPU 0, so that it is not the server that waits for them. A machine
// with one has no choice.
func otherCPU() string { return itoa(min(1, runtime.NumCPU()-1)) }
