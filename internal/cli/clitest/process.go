//go:build linux

package clitest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"slowpath/internal/report/layout"
)

const processesKey = "processes"

// SetUp has a script keep its processes, and gives it directories of its own.
func SetUp(e *testscript.Env) error {
	e.Values[processesKey] = map[string]*process{}
	e.Setenv("XDG_CACHE_HOME", e.WorkDir)
	cache, err := os.UserCacheDir() // of programs, for scripts that need real ones
	if err != nil {
		return err
	}
	e.Setenv("USER_CACHE", cache)
	e.Setenv("LANG", "C.UTF-8")
	e.Setenv("SLOWPATH_PAGER", "cat") // a verdict on a terminal is printed at once
	// Agents give root up, and servers of the lab run as another user: both have their files in there.
	if err := os.Chmod(filepath.Dir(e.WorkDir), 0o755); err != nil {
		return err
	}
	return os.MkdirAll(e.Getenv("TMPDIR"), 0o700)
}

// process is a command in the background of a script.
type process struct {
	cmd         *exec.Cmd
	out, ErrOut Output
	terminal    *os.File      // its other end; nil without
	typed       int           // bytes that it had printed when keys were typed
	read        chan struct{} // closed when all that it showed was read; nil without a terminal
	ended       chan struct{}
	err         error // after ended
}

// Output is what a process has printed so far.
type Output struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes.String()
}

// startProcess is "start NAME COMMAND…".
func startProcess(ts *testscript.TestScript, neg bool, args []string) {
	p := newProcess(ts, neg, args)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.ErrOut
	p.start(ts, args[0])
}

// startOnTerminal is "terminal NAME COMMAND…": as start, on a terminal of its own, of $COLUMNS columns (80 without).
// What it prints there is stdout of finish.
func startOnTerminal(ts *testscript.TestScript, neg bool, args []string) {
	p := newProcess(ts, neg, args)
	var name string
	p.terminal, name = openTerminal(ts)
	if columns, err := strconv.ParseUint(ts.Getenv("COLUMNS"), 10, 16); err == nil {
		ts.Check(unix.IoctlSetWinsize(int(p.terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{
			Row: 24, Col: uint16(columns),
		}))
	}
	end, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	ts.Check(err)
	defer end.Close()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = end, end, end
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.start(ts, args[0])
	p.read = make(chan struct{})
	go func() {
		defer close(p.read)
		_, _ = io.Copy(&p.out, p.terminal) // until all that have it open have ended
	}()
}

// Drives is what moves the cursor of a terminal, or colours it.
var Drives = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// fitsTerminal is "fits NAME": no line that its terminal has shown is longer than $COLUMNS.
func fitsTerminal(ts *testscript.TestScript, neg bool, args []string) {
	columns, err := strconv.Atoi(ts.Getenv("COLUMNS"))
	ts.Check(err)
	shown := Drives.ReplaceAllString(Named(ts, args).out.String(), "")
	for line := range strings.FieldsFuncSeq(shown, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if layout.Width(line) > columns && !strings.HasPrefix(line, "  slowpath ") { // to be copied
			ts.Fatalf("%d columns: %q", layout.Width(line), line)
		}
	}
}

// pressEnter is "enter NAME TEXT": waits until the terminal has shown the text, and presses Enter.
func pressEnter(ts *testscript.TestScript, neg bool, args []string) {
	p := Named(ts, args)
	if neg || len(args) != 2 || p.terminal == nil {
		ts.Fatalf("usage: enter NAME TEXT, of a terminal")
	}
	Eventually(ts, args[1], func() bool { return strings.Contains(p.out.String(), args[1]) })
	_, err := p.terminal.WriteString("\n")
	ts.Check(err)
}

// typeKeys is "type NAME REGEXP KEYS": waits until the terminal has shown the text since the last keys, and types. Keys
// are written as in a string of Go: \r is Enter, \x1b Esc.
func typeKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: type NAME REGEXP KEYS")
	}
	p, want := Named(ts, args), regexp.MustCompile(args[1])
	if p.terminal == nil {
		ts.Fatalf("%s has no terminal", args[0])
	}
	Eventually(ts, args[1], func() bool {
		return want.MatchString(Drives.ReplaceAllString(p.out.String()[p.typed:], ""))
	})
	keys, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	p.typed = len(p.out.String())
	_, err = p.terminal.WriteString(keys)
	ts.Check(err)
}

// openTerminal makes a pseudoterminal for a script.
func openTerminal(ts *testscript.TestScript) (master *os.File, name string) {
	master, name, err := OpenPseudoterminal()
	ts.Check(err)
	ts.Defer(func() { master.Close() })
	columns := 80
	if n, err := strconv.Atoi(ts.Getenv("COLUMNS")); err == nil {
		columns = n
	}
	ts.Check(unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
	return master, name
}

// OpenPseudoterminal makes one (pts(4)): one end, and the name of the other.
func OpenPseudoterminal() (master *os.File, name string, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, "", err
	}
	n := 0
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		n, err = unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	}
	return master, fmt.Sprintf("/dev/pts/%d", n), err
}

// hangUp is "hangup NAME": its terminal is gone, as after a lost ssh.
func hangUp(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(Named(ts, args).terminal.Close())
}

func newProcess(ts *testscript.TestScript, neg bool, args []string) *process {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start|terminal NAME COMMAND...")
	}
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	p := &process{cmd: exec.Command(path, args[2:]...), ended: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = environment(ts)
	return p
}

func (p *process) start(ts *testscript.TestScript, name string) {
	ts.Check(p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	ts.Defer(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	ts.Value(processesKey).(map[string]*process)[name] = p
}

// Begin starts a command whose stdout is a file.
func Begin(ts *testscript.TestScript, name string, cmd *exec.Cmd, stdout *os.File) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = stdout, &p.ErrOut
	p.start(ts, name)
}

func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "LANG", "REDISCLI_AUTH", "NO_COLOR", "TERM",
		"SLOWPATH_PAGER",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func Named(ts *testscript.TestScript, args []string) *process {
	if len(args) > 0 {
		if p := ts.Value(processesKey).(map[string]*process)[args[0]]; p != nil {
			return p
		}
	}
	ts.Fatalf("no such process: %v", args)
	return nil
}

var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "STOP": syscall.SIGSTOP,
	"CONT": syscall.SIGCONT,
}

func signalProcess(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(Named(ts, args).cmd.Process.Signal(signals[args[1]]))
}

// hammerProcess signals until the process has ended: two signals that come at once are one.
func hammerProcess(ts *testscript.TestScript, neg bool, args []string) {
	p := Named(ts, args)
	Eventually(ts, "the end of "+args[0], func() bool {
		_ = p.cmd.Process.Signal(signals[args[1]]) // it may have ended
		select {
		case <-p.ended:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
}

// processSays is "says NAME REGEXP".
func processSays(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: says NAME REGEXP")
	}
	p, want := Named(ts, args), regexp.MustCompile(args[1])
	Eventually(ts, args[1], func() bool {
		return want.MatchString(p.out.String()) || want.MatchString(p.ErrOut.String())
	})
}

// processOpens is "opens NAME FILE".
func processOpens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: opens NAME FILE")
	}
	files, want := fmt.Sprintf("/proc/%d/fd/*", Named(ts, args).cmd.Process.Pid), ts.MkAbs(args[1])
	Eventually(ts, "an open "+args[1], func() bool {
		open, _ := filepath.Glob(files)
		return slices.ContainsFunc(open, func(fd string) bool {
			path, err := os.Readlink(fd)
			return err == nil && path == want
		})
	})
}

// finishProcess is "finish NAME CODE". What the process printed is then stdout and stderr.
func finishProcess(ts *testscript.TestScript, neg bool, args []string) {
	p := Named(ts, args)
	Eventually(ts, "the end of "+args[0], func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if p.read != nil { // what it printed last may still be in the terminal
		select {
		case <-p.read:
		case <-time.After(10 * time.Second): // something that it started has it open
		}
	}
	fmt.Fprint(ts.Stdout(), p.out.String())
	fmt.Fprint(ts.Stderr(), p.ErrOut.String())
	checkCode(ts, args[1], p.err)
}

// cmdline is "cmdline NAME": what other users see of the process in ps.
func cmdline(ts *testscript.TestScript, neg bool, args []string) {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", Named(ts, args).cmd.Process.Pid))
	ts.Check(err)
	_, _ = ts.Stdout().Write(body)
}

// HangupEnds has SIGHUP end what the test starts, also under nohup: what is caught here is the default there.
func HangupEnds(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
}
