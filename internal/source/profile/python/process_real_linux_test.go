package python

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/symbol"
)

var (
	interpreter = flag.String("python", "/usr/bin/python3", "the CPython that real tests run")
	record      = flag.String("record", "", "a name: TestStacks writes what it reads as testdata/NAME-VERSION.mem.gz")
)

var debianPython = needs.Command("/usr/bin/python3", "python3")

// start runs testdata/threads.py and opens it.
func start(t testing.TB, wrap func(*exec.Cmd), args ...string) *program {
	t.Helper()
	lines := programText(t)
	file := filepath.Join(t.TempDir(), "threads.py")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(*interpreter, append([]string{file}, args...)...)
	if wrap != nil {
		wrap(c)
	}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = c.Process.Kill(); _ = c.Wait() })
	p := &program{threads: map[string]int{}, lines: lines, pid: c.Process.Pid}
	out := bufio.NewScanner(stdout)
	for p.threads["main"] == 0 && out.Scan() {
		var name string
		var tid int
		if _, err := fmt.Sscan(out.Text(), &name, &tid); err != nil {
			t.Fatalf("%q: %v", out.Text(), err)
		}
		p.threads[name] = tid
	}
	if p.Process, err = Open(hostfs.Root{}, c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	t.Log("Python", p.Version)
	return p
}

// TestStacks: threads that wait, spin, block an event loop and recurse.
func TestStacks(t *testing.T) {
	needs.Real(t, debianPython)
	p := start(t, nil)
	var s Sample
	for name, want := range stacks {
		await.UntilOr(t, func() bool {
			if err := p.Stacks([]int{p.threads[name]}, &s); err != nil {
				t.Fatal(err)
			}
			return len(s.Stacks) == 1 && p.has(s.Stacks[0], want)
		}, func() string { return fmt.Sprintf("the stack of %s is %+v", name, s) })
		if got := s.Stacks[0]; got.TID != p.threads[name] || got.Truncated || got.Moved && name != "spin" {
			t.Errorf("%s: %+v", name, got)
		}
		for _, f := range s.Stacks[0].Frames {
			if f.Line == 0 || f.File == "" || f.Begin && f.Function != "<module>" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	if *record != "" {
		p.record(t, *record)
	}
	await.UntilOr(t, func() bool {
		if err := p.Stacks([]int{p.threads["deep"]}, &s); err != nil {
			t.Fatal(err)
		}
		return len(s.Stacks) == 1 && s.Stacks[0].Truncated && len(s.Stacks[0].Frames) == maxFrames &&
			s.Stacks[0].Frames[maxFrames-1].Line == p.want("deep # recurses").Line
	}, func() string { return fmt.Sprintf("the deep stack is %+v", s) })
}

// record writes the memory that is read of the threads in stacks.
func (p *program) record(t *testing.T, name string) {
	t.Helper()
	r := &recorder{ReaderAt: p.mem}
	at := [5]uint64{p.runtime, 0, p.types.code, p.types.text, p.types.bytes}
	mapped, err := symbol.OpenProcess(hostfs.Root{}, p.pid, symbol.Files{})
	if err != nil {
		t.Fatal(err)
	}
	at[1] = mapped.Variables("libpython", "Py_Version")[0]
	q := newProcess(r, at)
	if err := q.identify(at[1]); err != nil {
		t.Fatal(err)
	}
	var s Sample
	for name, want := range stacks {
		await.Until(t, name+" is read", func() bool {
			return q.Stacks([]int{p.threads[name]}, &s) == nil && len(s.Stacks) == 1 && p.has(s.Stacks[0], want)
		})
	}
	if err := r.write("testdata/"+name+"-"+p.Version+".mem.gz", at, p.threads); err != nil {
		t.Fatal(err)
	}
}

// TestHoldsGIL: of all threads only the one that spins holds the GIL.
func TestHoldsGIL(t *testing.T) {
	needs.Real(t, debianPython)
	p := start(t, nil)
	var s Sample
	await.UntilOr(t, func() bool {
		if err := p.Stacks([]int{p.threads["spin"], p.threads["wait"], p.threads["main"]}, &s); err != nil {
			t.Fatal(err)
		}
		return len(s.Stacks) == 3 && s.Stacks[0].HoldsGIL
	}, func() string { return fmt.Sprintf("%+v", s) })
	if s.Stacks[1].HoldsGIL || s.Stacks[2].HoldsGIL {
		t.Errorf("threads that sleep hold it: %+v", s.Stacks[1:])
	}
}

// TestShortCalls: a thread that holds the GIL and calls short functions over and over, faster than it can be read. Its
// stacks are those that there were but for very few (of 1.4 million, with seven versions: none).
func TestShortCalls(t *testing.T) {
	needs.Real(t, debianPython)
	p := start(t, nil, "churn")
	callers := map[string][]string{
		"churn_one":   {"churn", "churn_other", "churn_other.<locals>.<genexpr>"},
		"churn_other": {"churn"}, "churn_other.<locals>.<genexpr>": {"churn_other"},
		"churn": {"start.<locals>.first"}, "start.<locals>.first": {"Thread.run"},
		"Thread.run": {"Thread._bootstrap_inner"}, "Thread._bootstrap_inner": {"Thread._bootstrap"},
		"Thread._bootstrap": {""},
	}
	var s Sample
	read, lost, wrong, seen := 0, 0, 0, map[string]int{}
	for range 20_000 {
		if err := p.Stacks([]int{p.threads["churn"]}, &s); err != nil {
			t.Fatal(err)
		}
		lost += s.Lost
		for _, stack := range s.Stacks {
			read++
			for i, f := range stack.Frames {
				seen[f.Function]++
				caller := ""
				if i+1 < len(stack.Frames) {
					caller = stack.Frames[i+1].Function
				}
				if !slices.Contains(callers[f.Function], caller) {
					wrong++
					t.Logf("%s is called by %q: %+v", f.Function, caller, stack)
				}
			}
		}
	}
	t.Logf("%d stacks, %d lost, %d wrong: %v", read, lost, wrong, seen)
	if read < lost || wrong*1000 > read || seen["churn"] == 0 || seen["churn_one"] == 0 {
		t.Errorf("%d stacks were read, %d lost, %d wrong", read, lost, wrong)
	}
}

// TestNamespace: in a PID namespace, thread states have the numbers that threads have there.
func TestNamespace(t *testing.T) {
	needs.Real(t, needs.Root, debianPython)
	p := start(t, func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	})
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	var tids []int
	for _, n := range names {
		var tid int
		if _, err := fmt.Sscan(n.Name(), &tid); err != nil {
			t.Fatal(err)
		}
		tids = append(tids, tid)
	}
	var s Sample
	found := false
	await.UntilOr(t, func() bool {
		if err := p.Stacks(tids, &s); err != nil {
			t.Fatal(err)
		}
		found = slices.ContainsFunc(s.Stacks, func(s Stack) bool { return p.has(s, stacks["loop"]) })
		return found && len(s.Stacks) == len(tids)
	}, func() string { return fmt.Sprintf("%+v", s) })
}

// TestEnd: the process ends while it is open.
func TestEnd(t *testing.T) {
	needs.Real(t, debianPython)
	p := start(t, nil)
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var s Sample
	var err error
	await.Until(t, "its memory is gone", func() bool {
		err = p.Stacks([]int{p.threads["main"]}, &s)
		return err != nil
	})
	if !errors.Is(err, os.ErrProcessDone) || len(s.Stacks) > 0 {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestNoPython: a process of another program.
func TestNoPython(t *testing.T) {
	needs.Real(t)
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	if _, err := Open(hostfs.Root{}, c.Process.Pid); !errors.Is(err, ErrNoPython) {
		t.Errorf("%v", err)
	}
}
