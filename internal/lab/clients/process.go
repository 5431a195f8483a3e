package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"slowpath/internal/lab/clients/programs/protocol"
)

// Why a program ended early, where its exit code tells.
var (
	ErrUnsupported = errors.New("the library cannot do this")
	ErrConnect     = errors.New("cannot connect")
)

// Process is a client program that runs. It ends by itself when its standard input is closed, and so with whoever
// started it.
type Process struct {
	PID    int
	name   Name
	stdin  io.Closer
	out    output // its summary; valid after exited
	said   strings.Builder
	once   sync.Once     // closes ready
	addr   string        // of its HTTP service; valid after ready
	ready  chan struct{} // closed at its first successful call, or when it listens
	exited chan struct{} // closed when the child was waited for
	err    error         // valid after exited
}

// saidLimit bounds what is kept of what a program complains about, in bytes.
const saidLimit = 4 << 10

// output keeps what a program prints, of a bounded size. The buffer is not embedded: io.Copy would use its ReadFrom,
// past the bound.
type output struct{ buf bytes.Buffer }

func (o *output) Write(p []byte) (int, error) {
	if o.buf.Len()+len(p) > protocol.SummaryLimit {
		return 0, fmt.Errorf("it printed more than %d bytes", protocol.SummaryLimit)
	}
	return o.buf.Write(p)
}

// Start runs the program in a directory and tells it its options. The command lead, if any, is executed first and must
// execute what follows it, keeping the pid; it is where a program is put into a cgroup or on a CPU before it has
// threads.
func (p Program) Start(dir string, o Options, lead ...string) (*Process, error) {
	failed := func(err error) (*Process, error) { return nil, fmt.Errorf("starting the client %s: %w", p.Name, err) }
	o.Schema = protocol.Schema
	if err := o.Check(); err != nil {
		return failed(err)
	}
	line, err := json.Marshal(o)
	if err != nil {
		return failed(err)
	}
	argv := append(lead, p.Argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C for the lab does not reach it: its end has an order
	run := &Process{name: p.Name, ready: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stdout = &run.out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return failed(err)
	}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed(err)
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
		return failed(fmt.Errorf("%w: %s", writeErr, run.said.String()))
	}
	return run, nil
}

// listen waits for the line "ready" or "ready HOST:PORT" and keeps what else the program says, until it ends.
func (r *Process) listen(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := lines.Text()
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "ready":
			r.once.Do(func() { r.addr = rest; close(r.ready) })
		case r.said.Len()+len(line) < saidLimit:
			r.said.WriteString(line + "; ")
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // a line too long for the scanner
}

// AwaitReady waits until the program has made its first successful call, or listens for HTTP requests. Errors match
// ErrUnsupported or ErrConnect where the program says so.
func (r *Process) AwaitReady(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-r.exited:
		return r.ended("before its first call")
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first call of the client %s: %w", r.name, ctx.Err())
	}
}

// Addr is where the program's HTTP service listens, HOST:PORT; "" before it is ready, and where there is none.
func (r *Process) Addr() string {
	select {
	case <-r.ready:
		return r.addr
	default:
		return ""
	}
}

// ended says how the program ended; the process is gone.
func (r *Process) ended(when string) error {
	said := strings.TrimSuffix(r.said.String(), "; ")
	var exit *exec.ExitError
	if errors.As(r.err, &exit) {
		switch exit.ExitCode() {
		case protocol.UnsupportedExit:
			return fmt.Errorf("the client %s: %w: %s", r.name, ErrUnsupported, said)
		case protocol.ConnectExit:
			return fmt.Errorf("the client %s: %w: %s", r.name, ErrConnect, said)
		}
	}
	why := "exit status 0"
	if r.err != nil {
		why = r.err.Error()
	}
	return fmt.Errorf("the client %s ended %s (%s): %s", r.name, when, why, said)
}

// Exited is closed when the process is gone.
func (r *Process) Exited() <-chan struct{} { return r.exited }

// Kill ends a program that does not end by itself, and waits until it is gone.
func (r *Process) Kill() {
	if p, err := os.FindProcess(r.PID); err == nil {
		select {
		case <-r.exited: // the pid may be another's by now
		default:
			_ = p.Kill() // gone meanwhile
		}
	}
	<-r.exited
}

// Stop closes the program's standard input, waits for its end and returns what it has measured. A program that does not
// end within the time is the caller's to kill: Stop fails and can be called again. Errors match ErrUnsupported,
// ErrConnect or protocol.ErrSummary.
func (r *Process) Stop(patience time.Duration) (Summary, error) {
	_ = r.stdin.Close() // closed already, or the process is gone
	select {
	case <-r.exited:
	case <-time.After(patience):
		return Summary{}, fmt.Errorf("the client %s did not end within %v", r.name, patience)
	}
	if r.err != nil {
		return Summary{}, r.ended("with an error")
	}
	s, err := protocol.ParseSummary(r.out.buf.Bytes())
	if err != nil {
		return s, fmt.Errorf("reading what the client %s measured: %w", r.name, err)
	}
	return s, nil
}
