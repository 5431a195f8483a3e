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

// Why a program ended early, according to its exit code.
var (
	ErrUnsupported = errors.New("the library cannot do this")
	ErrConnect     = errors.New("cannot connect")
)

// Process is a client program that runs. It ends by itself when its standard input is closed, and so when the process
// that started it ends.
type Process struct {
	PID    int
	name   Name
	stdin  io.WriteCloser
	stdout output          // the summary; valid after exited
	stderr strings.Builder // valid after exited
	once   sync.Once       // closes ready
	addr   string          // of the HTTP service; valid after ready
	ready  chan struct{}   // closed at the first successful call, or when the service listens
	exited chan struct{}   // closed when the process has ended
	err    error           // valid after exited
}

// stderrLimit bounds what is kept of the standard error output, in bytes.
const stderrLimit = 4 << 10

// output keeps the standard output up to a limit. The buffer is not embedded, since io.Copy would call its ReadFrom,
// which has no limit.
type output struct{ buf bytes.Buffer }

func (o *output) Write(p []byte) (int, error) {
	if o.buf.Len()+len(p) > protocol.SummaryLimit {
		return 0, fmt.Errorf("it printed more than %d bytes", protocol.SummaryLimit)
	}
	return o.buf.Write(p)
}

// Start runs the program in a directory and sends it its options. The command prefix, if any, is executed first. It
// must execute its further arguments and keep the pid; it puts the program into a cgroup or on a CPU before it has
// threads.
func (p Program) Start(dir string, o Options, prefix ...string) (*Process, error) {
	failed := func(err error) (*Process, error) { return nil, fmt.Errorf("starting the client %s: %w", p.Name, err) }
	line, err := optionsLine(o)
	if err != nil {
		return failed(err)
	}
	argv := append(prefix, p.Argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C does not end it: the lab ends it in order
	run := &Process{name: p.Name, ready: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stdout = &run.stdout
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
	_, writeErr := stdin.Write(line)
	go func() {
		run.listen(stderr)
		run.err = cmd.Wait()
		close(run.exited)
	}()
	if writeErr != nil {
		_ = cmd.Process.Kill()
		<-run.exited
		return failed(fmt.Errorf("%w: %s", writeErr, run.stderr.String()))
	}
	return run, nil
}

// optionsLine is options as a program reads them.
func optionsLine(o Options) ([]byte, error) {
	o.Schema = protocol.Schema
	if err := o.Check(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(o)
	return append(line, '\n'), err
}

// Change lets the program go on with other options. Its workers stay; it opens its library again.
func (r *Process) Change(o Options) error {
	line, err := optionsLine(o)
	if err == nil {
		_, err = r.stdin.Write(line)
	}
	if err != nil {
		return fmt.Errorf("other options for the client %s: %w", r.name, err)
	}
	return nil
}

// listen reads standard error until it ends: it waits for the line "ready" or "ready HOST:PORT" and keeps other lines.
func (r *Process) listen(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := lines.Text()
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "ready":
			r.once.Do(func() { r.addr = rest; close(r.ready) })
		case r.stderr.Len()+len(line) < stderrLimit:
			r.stderr.WriteString(line + "; ")
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // if a line was too long for the scanner
}

// AwaitReady waits until the program has made its first successful call, or listens for HTTP requests. Errors match
// ErrUnsupported or ErrConnect if the program says so.
func (r *Process) AwaitReady(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-r.exited:
		select {
		case <-r.ready: // and has ended since
			return nil
		default:
			return r.ended("before its first call")
		}
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first call of the client %s: %w", r.name, ctx.Err())
	}
}

// Addr is HOST:PORT of the program's HTTP service; "" before it is ready, or without a service.
func (r *Process) Addr() string {
	select {
	case <-r.ready:
		return r.addr
	default:
		return ""
	}
}

// ended returns an error that says how the program ended. Call it after exited.
func (r *Process) ended(when string) error {
	text := strings.TrimSuffix(r.stderr.String(), "; ")
	var exit *exec.ExitError
	if errors.As(r.err, &exit) {
		switch exit.ExitCode() {
		case protocol.UnsupportedExit:
			return fmt.Errorf("the client %s: %w: %s", r.name, ErrUnsupported, text)
		case protocol.ConnectExit:
			return fmt.Errorf("the client %s: %w: %s", r.name, ErrConnect, text)
		}
	}
	why := "exit status 0"
	if r.err != nil {
		why = r.err.Error()
	}
	return fmt.Errorf("the client %s ended %s (%s): %s", r.name, when, why, text)
}

// Exited is closed when the process has ended.
func (r *Process) Exited() <-chan struct{} { return r.exited }

// Kill ends a program that does not end by itself, and waits for its end.
func (r *Process) Kill() {
	if p, err := os.FindProcess(r.PID); err == nil {
		select {
		case <-r.exited: // another process may have the pid now
		default:
			_ = p.Kill() // may have ended meanwhile
		}
	}
	<-r.exited
}

// Stop closes the program's standard input, waits for its end and returns its summary. If the program does not end
// within the timeout Stop fails, and the caller may call it again or Kill. Errors match ErrUnsupported, ErrConnect or
// protocol.ErrSummary.
func (r *Process) Stop(timeout time.Duration) (Summary, error) {
	_ = r.stdin.Close() // may be closed already, or the process may have ended
	select {
	case <-r.exited:
	case <-time.After(timeout):
		return Summary{}, fmt.Errorf("the client %s did not end within %v", r.name, timeout)
	}
	if r.err != nil {
		return Summary{}, r.ended("with an error")
	}
	s, err := protocol.ParseSummary(r.stdout.buf.Bytes())
	if err != nil {
		return s, fmt.Errorf("reading the summary of the client %s: %w", r.name, err)
	}
	return s, nil
}

// End is Stop, and kills the program where that fails.
func (r *Process) End(timeout time.Duration) (Summary, error) {
	s, err := r.Stop(timeout)
	if err != nil {
		r.Kill()
	}
	return s, err
}
