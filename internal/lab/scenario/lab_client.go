package scenario

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
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/step"
)

// ClientSpec is a client process of a scenario.
type ClientSpec struct {
	Program clients.Name
	Options clients.Options
	Cgroup  *fault.Cgroup // in which it is started, if any
	CPU     string        // CPUs that it may use, as taskset(1) lists them; empty: all
	Prefix  []string      // command that executes the program and keeps the pid, if any
}

// How long a client may take to its first successful call, which is longest when it fills its heap, and to its end.
const (
	clientReady = 30 * time.Second
	clientEnd   = 5 * time.Second // a JVM has to close its connections and to write its summary
)

// Client starts a client process and waits for its first reply. The process ends with the lab: its standard input is a
// pipe of this process, and the registry finds it by its directory. At the end it writes its own measurements to the
// lab's log: they prove the scenario without the tool that is graded by it.
func (l *Lab) Client(ctx context.Context, s ClientSpec) error {
	_, err := l.ClientProcess(ctx, s)
	return err
}

// ClientProcess is Client, and returns the process.
func (l *Lab) ClientProcess(ctx context.Context, s ClientSpec) (*clients.Process, error) {
	cache, err := clients.OpenCache("")
	if err != nil {
		return nil, err
	}
	program, err := cache.Get(ctx, s.Program, l.Log)
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
		return nil, fmt.Errorf("%w: %w", fault.ErrCannot, err)
	}
	if err != nil {
		return nil, err
	}
	dir, err := l.processDir("client-" + filepath.Base(string(s.Program)))
	if err != nil {
		return nil, err
	}
	c, err := program.Start(dir, s.Options, s.prefix()...)
	if err != nil {
		return nil, err
	}
	l.Defer(func(ctx context.Context) error {
		step.Say(ctx, "ending the client %s", s.Program)
		return l.endClient(s.Program, c)
	})
	step.Say(ctx, "waiting for the first call of the client %s", filepath.Base(string(s.Program)))
	ctx, cancel := context.WithTimeout(ctx, clientReady)
	defer cancel()
	return c, c.AwaitReady(ctx)
}

// endClient ends a client and logs its measurements. The error is ErrNotMade if the client had failed before.
func (l *Lab) endClient(name clients.Name, c *clients.Process) error {
	early := false
	select {
	case <-c.Exited():
		early = true
	default:
	}
	sum, err := c.Stop(clientEnd)
	switch {
	case err == nil:
		l.Logf("client %s: %s", name, sum)
	case early:
		err = fmt.Errorf("%w: %w", ErrNotMade, err)
	}
	return err
}

// processDirs counts the directories of this process: a scenario may have several clients.
var processDirs atomic.Int32

// processDir makes the working directory of a client or an application. By it the next lab finds its processes if this
// lab is killed.
func (l *Lab) processDir(name string) (string, error) {
	root, err := filepath.EvalSymlinks(os.TempDir()) // as in /proc/PID/cwd, by which the process is found
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, fmt.Sprintf("slowpath-%s-%d-%d", name, os.Getpid(), processDirs.Add(1)))
	for _, kind := range []fleet.Kind{fleet.KindDir, fleet.KindProcess} {
		if err := l.Register(fleet.Entry{Kind: kind, Path: dir}); err != nil {
			return "", err
		}
	}
	return dir, os.Mkdir(dir, 0o700)
}

// prefix is what is executed before the program and keeps the pid, so that all of its threads inherit it.
func (s ClientSpec) prefix() []string { return append(prefix(s.Cgroup, s.CPU), s.Prefix...) }

func prefix(g *fault.Cgroup, cpu string) []string {
	var argv []string
	if g != nil {
		argv = append(argv, "sh", "-c", `echo $$ > "$1" || exit 70; shift; exec "$@"`, "sh", g.Procs())
	}
	if cpu != "" {
		argv = append(argv, "taskset", "-c", cpu)
	}
	return argv
}

// otherCPU is a CPU for clients of a server that has CPU 0, so that they do not compete with it. A machine with one CPU
// has no choice.
func otherCPU() string { return itoa(min(1, runtime.NumCPU()-1)) }
