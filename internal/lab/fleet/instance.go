package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/lab/step"
)

// Instance is a server that runs.
type Instance struct {
	Info
	spec     Spec
	argv     []string
	foundBy  string // by what its program is found again
	programs string // directory or file, opened for the process, see the constant; empty: not needed
	registry *Registry
	process  Entry // with the pid once it is started
	dir      Entry
	exited   chan struct{} // closed when the process has ended
	exitErr  error         // valid after exited
}

// exec starts the process in its directory, as the leader of its own session, so that neither Ctrl-C nor the end of the
// lab ends it. Of root's environment a server gets no more than the path of commands.
func (i *Instance) exec() error {
	log, err := os.OpenFile(i.LogPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(i.argv[0], i.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = i.Dir, log, log
	if to := i.spec.Log; to != nil {
		cmd.Stdout, cmd.Stderr = to, to
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	if i.programs != "" {
		opened, err := os.Open(i.programs)
		if err != nil {
			return err
		}
		defer opened.Close()
		cmd.ExtraFiles = []*os.File{opened}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	i.PID, i.exited = cmd.Process.Pid, make(chan struct{})
	process, identErr := i.registry.host.process(i.PID) // the pid cannot be reused yet: nobody has waited for it
	exited := i.exited
	go func() {
		i.exitErr = cmd.Wait()
		close(exited)
	}()
	if identErr != nil {
		return identErr
	}
	info := i.Info
	i.process.Process, i.process.Info = process, &info
	return i.registry.Update(i.process)
}

// Stop ends the server with SIGTERM, after two seconds with SIGKILL, and removes its directory. To stop it twice is no
// error.
func (i *Instance) Stop(ctx context.Context) error {
	step.Say(ctx, "stopping %s on %s", i.Server, i.Addr)
	made := slices.DeleteFunc([]Entry{i.process, i.dir}, func(e Entry) bool { return e.ID == "" })
	if err := i.registry.Release(ctx, made...); err != nil {
		return fmt.Errorf("stopping %s: %w", i.Addr, err)
	}
	if i.exited != nil {
		<-i.exited // it is dead, so this only waits for the reaping
	}
	return nil
}

// Kill ends the server with SIGKILL and leaves its directory, so that it can be started again.
func (i *Instance) Kill(ctx context.Context) error {
	if err := i.registry.host.kill(ctx, i.process.Process); err != nil {
		return fmt.Errorf("killing %s: %w", i.Addr, err)
	}
	if i.exited != nil { // started by this process
		<-i.exited
	}
	return nil
}

// Restart starts a server that has ended again, in the same directory and on the same port, and waits as Start does.
func (i *Instance) Restart(ctx context.Context) error {
	if i.Running() {
		return fmt.Errorf("restarting %s: process %d still runs", i.Addr, i.PID)
	}
	ctx, cancel := withDefaultTimeout(ctx, startTimeout)
	defer cancel()
	i.process.Process = Process{}
	if err := i.registry.Update(i.process); err != nil {
		return err
	}
	if err := i.exec(); err != nil {
		return fmt.Errorf("restarting %s: %w", i.Addr, err)
	}
	return i.awaitReady(ctx)
}

// Running reports whether the process is alive.
func (i *Instance) Running() bool { return i.registry.host.alive(i.process.Process) }

// Do sends one command on a fresh connection, logged in with the password of the Spec. The reply is string, int64,
// []any or nil.
func (i *Instance) Do(ctx context.Context, args ...string) (any, error) {
	c, err := i.login(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", i.Addr, err)
	}
	defer c.Close()
	reply, err := c.ask(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", args[0], i.Addr, err)
	}
	return reply, nil
}

// Scan runs all steps of a SCAN over one connection: command is SCAN, or HSCAN, SSCAN or ZSCAN and a key; args come
// after the cursor. It pauses between two steps.
func (i *Instance) Scan(ctx context.Context, pause time.Duration, command []string, args ...string) error {
	c, err := i.login(ctx)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", i.Addr, err)
	}
	defer c.Close()
	for cursor := "0"; ; {
		reply, err := c.ask(ctx, slices.Concat(command, []string{cursor}, args)...)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", command[0], i.Addr, err)
		}
		parts, ok := reply.([]any)
		if !ok || len(parts) != 2 {
			return fmt.Errorf("%s of %s answers %v", command[0], i.Addr, reply)
		}
		if cursor = fmt.Sprint(parts[0]); cursor == "0" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (i *Instance) login(ctx context.Context) (*conn, error) {
	c, err := i.dial(ctx)
	if err != nil || i.spec.Password == "" {
		return c, err
	}
	if _, err := c.ask(ctx, "AUTH", i.spec.Password); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// logLines is how many lines of the end of the log an error contains.
const logLines = 4

// logTail is the end of the log on one line.
func (i Info) logTail() string {
	body, err := os.ReadFile(i.LogPath)
	if errors.Is(err, os.ErrNotExist) || len(body) == 0 {
		return "it logged nothing"
	}
	const enough = 2000
	lines := strings.Split(strings.TrimSpace(string(body[max(0, len(body)-enough):])), "\n")
	return "its log ends: " + strings.Join(lines[max(0, len(lines)-logLines):], " | ")
}
