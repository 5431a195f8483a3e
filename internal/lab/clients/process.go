package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a client program that runs. It ends by itself when its standard input is closed, and so with whoever started it.
type Process struct {
	PID    int
	name   Name
	stdin  io.Closer
	out    bytes.Buffer // its summary; valid after exited
	said   strings.Builder
	ready  chan struct{} // closed at its first successful call
	exited chan struct{} // closed when the child was waited for
	err    error         // valid after exited
}

// saidLimit bounds what is kept of what a program complains about, in bytes.
const saidLimit = 4 << 10

// Start runs the program in a directory and tells it its options. The command lead, if any, is executed first and must execute what
// follows it, keeping the pid; it is where a program is put into a cgroup or on a CPU before it has threads.
func (p Program) Start(dir string, o Options, lead ...string) (*Process, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("starting the client %s: %w", p.Name, err)
	}
	argv := append(lead, p.Argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C for the lab does not reach it: its end has an order
	run := &Process{name: p.Name, ready: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stdout = &run.out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the client %s: %w", p.Name, err)
	}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the client %s: %w", p.Name, err)
	}
	run.PID, run.stdin = cmd.Process.Pid, stdin
	_, writeErr := stdin.Write(append(line, '\n'))
	go func() {
		run.listen(stderr)
		run.err = cmd.Wait()
		close(run.exited)
	}()
	if writeErr != nil {
		_ = cmd.Process.Kill()
		<-run.exited
		return nil, fmt.Errorf("starting the client %s: %w: %s", p.Name, writeErr, run.said.String())
	}
	return run, nil
}

// listen waits for the line "ready" and keeps what else the program says, until it ends.
func (r *Process) listen(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "ready":
			close(r.ready)
		case r.said.Len()+len(line) < saidLimit:
			r.said.WriteString(line + "; ")
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // a line too long for the scanner
}

// AwaitReady waits until the program has made its first successful call.
func (r *Process) AwaitReady(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-r.exited:
		return fmt.Errorf("the client %s ended before its first call (%v): %s", r.name, r.err, r.said.String())
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first call of the client %s: %w", r.name, ctx.Err())
	}
}

// Exited is closed when the process is gone.
func (r *Process) Exited() <-chan struct{} { return r.exited }

// Stop closes the program's standard input, waits for its end and returns what it has measured. A program that does not end within the
// time is the caller's to kill: Stop fails and can be called again.
func (r *Process) Stop(patience time.Duration) (Summary, error) {
	var s Summary
	_ = r.stdin.Close() // closed already, or the process is gone
	select {
	case <-r.exited:
	case <-time.After(patience):
		return s, fmt.Errorf("the client %s did not end within %v", r.name, patience)
	}
	if r.err != nil {
		return s, fmt.Errorf("the client %s: %w: %s", r.name, r.err, r.said.String())
	}
	if err := json.Unmarshal(r.out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("reading the summary of the client %s: %w", r.name, err)
	}
	return s, nil
}

// String is a summary on one line, for the lab's log.
func (s Summary) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	out := fmt.Sprintf("%d calls in %v, %d errors, p50 %v, p99 %v, max %v, %d dials, CPU %v", s.Calls, s.Ran.Round(time.Millisecond), s.Errors,
		round(s.P50), round(s.P99), round(s.Max), s.Dials, s.CPU.Round(time.Millisecond))
	if s.PoolWaits > 0 {
		out += fmt.Sprintf(", %d waited %v for a connection", s.PoolWaits, s.PoolWait.Round(time.Millisecond))
	}
	if s.GCs > 0 {
		out += fmt.Sprintf(", %d collections of %v, the longest %v", s.GCs, s.GCTime.Round(time.Millisecond), round(s.GCMax))
	}
	if s.LastError != "" {
		out += ", last error: " + s.LastError
	}
	return out
}
