//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// faultCase is a command under a fault, and what is expected of it.
type faultCase struct {
	family, name string
	quick        bool            // runs in the suite, too
	before       func(*faultRun) // makes the fault
	line         string          // the command line, for sh, with the variables that before has set
	during       func(*faultRun) // what happens to the command
	codes        string          // its exit code, or one of several: "0|1"
	says         string          // a regular expression that what it prints matches
	lines        int             // of stderr, at most; 0: one
	within       time.Duration   // it must have ended; 0: a minute
	leaves       []string        // patterns of the names of files that may be there afterwards
	after        func(*faultRun)
}

// faultRun is a case while it runs.
type faultRun struct {
	*testing.T
	program     string // the directory of slowpath
	dir         string // its working directory; that of temporary files is tmp in it
	line        string
	variables   []string
	cmd         *exec.Cmd
	out, errOut lockedBuffer
	ended       chan struct{}
}

// lockedBuffer is written by the command while a case reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *lockedBuffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

// TestFaults runs commands under faults: of servers, of the host, of files. The suite runs a part of the cases, make
// faults (SLOWPATH_FAULTS=all) all of them. In the end it logs a table of the families.
func TestFaults(t *testing.T) {
	needs.Real(t)
	clitest.HangupEnds(t)
	program := builtProgram(t)
	var tally faultTally
	names := map[string]bool{}
	newest := newestProgram()
	t.Run("all", func(t *testing.T) {
		for _, c := range slices.Concat(strangerCases(), refusingCases(), breakingCases(), dyingCases(), signalCases(),
			hostCases(), recordingCases(), greatCases(), agentCases()) {
			full := c.family + "/" + c.name
			if names[full] {
				t.Errorf("two cases are called %s", full)
			}
			names[full] = true
			if !c.quick && os.Getenv("SLOWPATH_FAULTS") != "all" {
				continue
			}
			t.Run(full, func(t *testing.T) {
				t.Parallel()
				begin := time.Now()
				defer func() { tally.add(c.family, t, time.Since(begin)) }()
				c.run(t, program)
			})
		}
	})
	if err := checkDetached(newest); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", tally.table())
}

// builtProgram is the directory of what users have, which the test's own binary is not: without cgo and symbols, and
// with a name of its own.
func builtProgram(t *testing.T) (dir string) {
	t.Helper()
	dir, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// buildProgram builds it once, beside the commands of the scripts, which testscript removes.
var buildProgram = sync.OnceValues(func() (dir string, err error) {
	beside, err := exec.LookPath(syntheticRecording)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(filepath.Dir(beside), "built")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+"/", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building slowpath: %w: %s", err, out)
	}
	return dir, nil
})

func (c faultCase) run(t *testing.T, program string) {
	r := &faultRun{T: t, program: program, dir: t.TempDir(), ended: make(chan struct{})}
	if err := os.Mkdir(filepath.Join(r.dir, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	if c.before != nil {
		c.before(r)
	}
	begin := time.Now()
	r.line = c.line
	r.start()
	if c.during != nil {
		c.during(r)
	}
	select {
	case <-r.ended:
	case <-time.After(orElse(c.within, time.Minute) - time.Since(begin)):
		_ = r.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines say where it hangs
		<-r.ended
		t.Fatalf("%s\nhas not ended after %v: %s", c.line, time.Since(begin), r.errOut.String())
	}
	t.Logf("%s: exit code %d after %v: %.300q", c.line, r.cmd.ProcessState.ExitCode(),
		time.Since(begin).Round(time.Millisecond), r.errOut.String())
	c.check(r)
	if c.after != nil {
		c.after(r)
	}
}

func orElse[T comparable](v, other T) T {
	var none T
	if v == none {
		return other
	}
	return v
}

// start runs the command in a process group of its own. sh replaces itself by it, so that signals reach it.
func (r *faultRun) start() {
	r.Helper()
	r.cmd = exec.Command("sh", "-c", "exec "+r.line)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.dir, &r.out, &r.errOut
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r.cmd.Env = append([]string{
		"PATH=" + r.program + ":" + os.Getenv("PATH"),
		"HOME=" + r.dir, "LANG=C.UTF-8", "TMPDIR=" + filepath.Join(r.dir, "tmp"),
	}, r.variables...)
	if err := r.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	go func() { _ = r.cmd.Wait(); close(r.ended) }() // its state is in cmd.ProcessState
	r.Cleanup(func() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL); <-r.ended })
}

// set gives the command line a variable.
func (r *faultRun) set(name, value string) { r.variables = append(r.variables, name+"="+value) }

// eventually polls.
func (r *faultRun) eventually(what string, ok func() bool) {
	r.Helper()
	for end := time.Now().Add(time.Minute); !ok(); await.Pass(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("waited a minute for %s; stdout %.300q, stderr %.300q", what, r.out.String(), r.errOut.String())
		}
	}
}

// listen starts a peer, and sets a variable to its address.
func (r *faultRun) listen(name string, serve func(net.Conn)) {
	r.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	r.set(name, l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reachedFakes.Store(l.Addr().String(), true)
			r.Cleanup(func() { c.Close() })
			go func() { defer c.Close(); serve(c) }()
		}
	}()
}

// crashes are what a Go program prints that nobody has written for a user, and %! is a wrong format.
var crashes = regexp.MustCompile(`(?m)^panic:|^fatal error:|^goroutine \d+|SIGSEGV|^runtime[:.]|%!`)

// check compares what the command did with what is expected of it.
func (c faultCase) check(r *faultRun) {
	r.Helper()
	code, stdout, stderr := r.cmd.ProcessState.ExitCode(), r.out.String(), r.errOut.String()
	if !slices.Contains(strings.Split(c.codes, "|"), strconv.Itoa(code)) {
		r.Errorf("exit code %d, want %s", code, c.codes)
	}
	if m := crashes.FindString(stdout + "\n" + stderr); m != "" {
		r.Errorf("it crashed: %s", m)
	}
	if n := strings.Count(stderr, "\n"); n > orElse(c.lines, 1) || stderr != "" && !strings.HasSuffix(stderr, "\n") {
		r.Errorf("%d lines on stderr, want at most %d, of which each ends", n, orElse(c.lines, 1))
	}
	all := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	last := all[len(all)-1]
	if code > cli.ExitFindings && !strings.HasPrefix(last, "slowpath: ") {
		r.Errorf("it does not end in an error: %q", last)
	}
	if strings.ContainsFunc(strings.ReplaceAll(stderr, "\n", ""), func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.Errorf("control characters: %q", stderr)
	}
	if !regexp.MustCompile(c.says).MatchString(stdout + "\n" + stderr) {
		r.Errorf("%q is not said", c.says)
	}
	c.checkLeft(r)
	if r.Failed() {
		r.Logf("stdout %.2000q\nstderr %.2000q", stdout, stderr)
	}
}

// checkLeft: no file that was not asked for, and no process.
func (c faultCase) checkLeft(r *faultRun) {
	r.Helper()
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		expected := func(pattern string) bool { ok, _ := filepath.Match(pattern, d.Name()); return ok }
		if !slices.ContainsFunc(c.leaves, expected) {
			r.Errorf("it left %s", path)
		}
		return nil
	})
	if err != nil {
		r.Error(err)
	}
	if err := syscall.Kill(-r.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		r.Errorf("a process of it goes on (%v)", err)
	}
}

// faultTally counts cases by family.
type faultTally struct {
	mu       sync.Mutex
	families []string // in order of appearance
	rows     map[string]*tallyRow
}

type tallyRow struct {
	cases, passed, skipped int
	took                   time.Duration
}

func (f *faultTally) add(family string, t *testing.T, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := f.rows[family]
	if row == nil {
		if f.rows == nil {
			f.rows = map[string]*tallyRow{}
		}
		row = &tallyRow{}
		f.rows[family] = row
		f.families = append(f.families, family)
	}
	row.cases++
	row.took += took
	switch {
	case t.Skipped():
		row.skipped++
	case !t.Failed():
		row.passed++
	}
}

func (f *faultTally) table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "family\tcases\tpassed\tskipped\tseconds")
	var all tallyRow
	slices.Sort(f.families)
	for _, name := range f.families {
		row := f.rows[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f\n", name, row.cases, row.passed, row.skipped, row.took.Seconds())
		all.cases, all.passed, all.skipped = all.cases+row.cases, all.passed+row.passed, all.skipped+row.skipped
		all.took += row.took
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%d\t%.1f\n", all.cases, all.passed, all.skipped, all.took.Seconds())
	_ = w.Flush() // to memory
	return text.String()
}
