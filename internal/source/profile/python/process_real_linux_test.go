package python

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/interpreter"
	"slowpath/internal/source/profile/interpreter/memorytest"
)

var (
	program = flag.String("python", "/usr/bin/python3", "the CPython that real tests run")
	record  = flag.String("record", "", "a name: TestStacks writes what it reads as testdata/NAME-VERSION.mem.gz")
)

var debianPython = needs.Command("/usr/bin/python3", "python3")

func start(t testing.TB, wrap func(*exec.Cmd), args ...string) *memorytest.Program {
	t.Helper()
	p := memorytest.NewProgram(t, checked.Program)
	p.Start(t, &Language, wrap, append([]string{*program}, args...)...)
	return p
}

// TestStacks: threads that wait, spin, block an event loop and recurse.
func TestStacks(t *testing.T) {
	needs.Real(t, debianPython)
	checked.Started(t, start(t, nil), *record)
}

// TestHoldsGIL: of all threads only the one that spins holds the GIL.
func TestHoldsGIL(t *testing.T) {
	needs.Real(t, debianPython)
	p := start(t, nil)
	var s interpreter.Sample
	await.UntilOr(t, func() bool {
		if err := p.Stacks([]int{p.Threads["spin"], p.Threads["wait"], p.Threads["main"]}, &s); err != nil {
			t.Fatal(err)
		}
		return len(s.Stacks) == 3 && s.Stacks[0].HoldsLock
	}, func() string { return fmt.Sprintf("%+v", s) })
	if s.Stacks[1].HoldsLock || s.Stacks[2].HoldsLock {
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
	p.ShortCalls(t, callers)
}

// TestNamespace: in a PID namespace, thread states have the numbers that threads have there.
func TestNamespace(t *testing.T) {
	needs.Real(t, needs.Root, debianPython)
	p := start(t, func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	})
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
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
	var s interpreter.Sample
	found := false
	await.UntilOr(t, func() bool {
		if err := p.Stacks(tids, &s); err != nil {
			t.Fatal(err)
		}
		found = slices.ContainsFunc(s.Stacks, func(s interpreter.Stack) bool {
			return p.Has(s, checked.Stacks["loop"])
		})
		return found && len(s.Stacks) == len(tids)
	}, func() string { return fmt.Sprintf("%+v", s) })
}

// TestEnd: the process ends while it is open.
func TestEnd(t *testing.T) {
	needs.Real(t, debianPython)
	p := start(t, nil)
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var s interpreter.Sample
	var err error
	await.Until(t, "its memory is gone", func() bool {
		err = p.Stacks([]int{p.Threads["main"]}, &s)
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
	if _, err := Language.Open(hostfs.Root{}, c.Process.Pid); !errors.Is(err, interpreter.ErrNone) {
		t.Errorf("%v", err)
	}
}
