package apps

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"slowpath/internal/lab/clients/programs/protocol"
)

// Options say which server an application uses.
type Options struct {
	Addr      string // HOST:PORT
	Password  string
	CACert    string // file of the CA of the server's certificate: the application connects by TLS
	Twemproxy bool   // the server at Addr is a twemproxy
	// Rate is operations per second; 0: that of the catalogue.
	Rate float64
	// Slice is the length of the slices in which the operations of a web application are summed up; 0: none.
	Slice time.Duration
	// Callers is the number of threads that call, and PoolSize that of the connections which they share; 0: as the
	// application has them. Only redisson can have others.
	Callers, PoolSize int
}

var (
	// ErrUnsupported says that an application cannot do what the options ask for.
	ErrUnsupported = errors.New("the application cannot do this")
	// ErrEnded says that a process had ended before it was stopped.
	ErrEnded = errors.New("a process had ended")
)

// How long an application may take to its first operation, in which JVMs start on a busy machine, and to its end.
const (
	startTimeout = 60 * time.Second
	endTimeout   = 10 * time.Second
)

// Running is an application that runs. Its processes end with this process at the latest.
type Running struct {
	name      Name
	collector *collector
	processes []*process    // in the order of their start
	visitors  *visitors     // of web applications
	endAfter  time.Duration // SIGKILL follows SIGTERM so much later
	stop      sync.Once
	stopErr   error
}

// process is one process of an application.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // valid after exited
}

// Start runs the application in a directory, and waits for its first successful operation. The command prefix, if any,
// is executed before each of its processes; it must execute its further arguments and keep the pid.
func (p Program) Start(ctx context.Context, dir string, o Options, prefix ...string) (*Running, error) {
	r := &Running{name: p.Name, collector: newCollector(), endAfter: endTimeout}
	if err := p.start(ctx, r, dir, o, prefix); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the application %s: %w", p.Name, err), r.end())
	}
	return r, nil
}

func (p Program) start(ctx context.Context, r *Running, dir string, o Options, prefix []string) error {
	if err := p.check(o); err != nil {
		return err
	}
	at := p.place
	if p.Web {
		var err error
		if at.listen, err = freeAddress(); err != nil {
			return err
		}
	}
	o.Rate = cmp.Or(o.Rate, p.Rate)
	env := append(os.Environ(), p.environment(o, at.listen)...)
	for _, argv := range p.recipe.argvs(at) {
		one, err := startProcess(slices.Concat(prefix, argv), dir, env, r.collector)
		if err != nil {
			return err
		}
		r.processes = append(r.processes, one)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if p.Web {
		r.visitors = startVisitors("http://"+at.listen+"/", o, r.collector)
	}
	return r.awaitWork(ctx)
}

func (p Program) check(o Options) error {
	switch {
	case o.Addr == "":
		return errors.New("no address of a server")
	case o.Twemproxy && !p.Twemproxy:
		return fmt.Errorf("%w: it sends %s, of which twemproxy does not know all", ErrUnsupported, p.Commands)
	case o.CACert != "" && !p.TLS:
		return fmt.Errorf("%w: TLS with a CA of the environment", ErrUnsupported)
	case (o.Callers != 0 || o.PoolSize != 0) && !p.Pool:
		return fmt.Errorf("%w: another number of callers and connections", ErrUnsupported)
	}
	return nil
}

// environment is what docs/apps.md says, with variables by which TLS libraries find CAs.
func (p Program) environment(o Options, listen string) []string {
	server := url.URL{Scheme: "redis", Host: o.Addr}
	if o.CACert != "" {
		server.Scheme = "rediss"
	}
	if o.Password != "" {
		server.User = url.UserPassword("", o.Password)
	}
	proxy := ""
	if o.Twemproxy {
		proxy = "twemproxy"
	}
	env := []string{
		"REDIS_URL=" + server.String(), "APP_RATE=" + strconv.FormatFloat(o.Rate, 'f', -1, 64), "APP_PROXY=" + proxy,
		"APP_LISTEN=" + listen,
	}
	if o.CACert != "" {
		env = append(env, "SSL_CERT_FILE="+o.CACert, "NODE_EXTRA_CA_CERTS="+o.CACert)
	}
	if o.Callers > 0 {
		env = append(env, "APP_CALLERS="+strconv.Itoa(o.Callers))
	}
	if o.PoolSize > 0 {
		env = append(env, "APP_POOL="+strconv.Itoa(o.PoolSize))
	}
	return env
}

func startProcess(argv []string, dir string, env []string, out *collector) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, env
	// Its own session, so that Ctrl-C does not end it: the lab ends it in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	p.cmd.WaitDelay = time.Second // children that outlive it may hold its output
	read, write := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, lineLimit)
		for lines.Scan() {
			out.line(lines.Bytes())
		}
		_, _ = io.Copy(io.Discard, read) // if a line was too long for the scanner
	}()
	go func() {
		p.err = p.cmd.Wait()
		write.Close()
		close(p.exited)
	}()
	return p, nil
}

// awaitWork waits until an operation has succeeded.
func (r *Running) awaitWork(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case <-r.collector.worked:
		return nil
	case err := <-r.died(ctx):
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for its first operation: %w; it printed: %s; it did: %s", ctx.Err(),
			r.collector.end(), r.Stats())
	}
}

// died gets an error when one of the processes has ended before ctx.
func (r *Running) died(ctx context.Context) <-chan error {
	first := make(chan error, len(r.processes))
	for _, p := range r.processes {
		go func() {
			select {
			case <-p.exited:
				first <- fmt.Errorf("%s ended (%v): %s", p.cmd.Args, p.err, r.collector.end())
			case <-ctx.Done():
			}
		}()
	}
	return first
}

// Stats is what it has done so far, up to the last full second.
func (r *Running) Stats() Stats { return r.collector.stats() }

// Measured are the operations of a web application by when its visitors began them, in slices of Options.Slice from the
// returned time on. It is for a web application that has been stopped.
func (r *Running) Measured() (start time.Time, slices []protocol.Slice) {
	return r.visitors.start, r.visitors.slices.Sums(time.Now())
}

// PIDs are those of its processes, without their children.
func (r *Running) PIDs() []int {
	pids := make([]int, len(r.processes))
	for i, p := range r.processes {
		pids[i] = p.cmd.Process.Pid
	}
	return pids
}

// Stop ends it, those who ask for work before those who do it, and returns what it has done. A second call returns the
// same. The error says which process had ended before, or did not end by SIGTERM.
func (r *Running) Stop() (Stats, error) {
	r.stop.Do(func() { r.stopErr = r.end() })
	return r.Stats(), r.stopErr
}

func (r *Running) end() error {
	if r.visitors != nil {
		r.visitors.end()
	}
	var errs []error
	for _, p := range slices.Backward(r.processes) {
		errs = append(errs, p.end(r.endAfter))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the application %s: %w; it printed: %s", r.name, err, r.collector.end())
	}
	return nil
}

// end ends a process with SIGTERM, and what is left of its children with SIGKILL.
func (p *process) end(timeout time.Duration) error {
	pid := p.cmd.Process.Pid
	defer func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }() // mostly nothing is left
	select {
	case <-p.exited:
		return fmt.Errorf("%w (%v): %s", ErrEnded, p.err, p.cmd.Args)
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(timeout):
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it is in its own group
		<-p.exited
		return fmt.Errorf("%s did not end within %v of SIGTERM", p.cmd.Args, timeout)
	}
}
