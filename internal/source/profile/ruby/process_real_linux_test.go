package ruby

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
	program = flag.String("ruby", "/usr/bin/ruby", "the CRuby that real tests run")
	record  = flag.String("record", "", "a name: TestStacks writes what it reads as testdata/NAME-VERSION.mem.gz")
)

var debianRuby = needs.Command("/usr/bin/ruby", "ruby")

func start(t testing.TB, wrap func(*exec.Cmd), args ...string) *memorytest.Program {
	t.Helper()
	p := memorytest.NewProgram(t, checked.Program)
	p.Start(t, &Language, wrap, append([]string{*program}, args...)...)
	return p
}

// TestStacks: threads that wait, spin, run a fiber and recurse.
func TestStacks(t *testing.T) {
	needs.Real(t, debianRuby)
	checked.Started(t, start(t, nil), *record)
}

// TestHoldsGVL: of all threads only the one that spins holds the lock.
func TestHoldsGVL(t *testing.T) {
	needs.Real(t, debianRuby)
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

// TestShortCalls: a thread that holds the lock and calls short functions over and over, faster than it can be read.
func TestShortCalls(t *testing.T) {
	needs.Real(t, debianRuby)
	p := start(t, nil, "churn")
	p.ShortCalls(t, map[string][]string{
		"churn_one":   {"churn", "churn_other", "block in churn_other"},
		"churn_other": {"churn"}, "block in churn_other": {"churn_other"},
		"churn": {"block in <main>"}, "block in <main>": {"block in start"}, "block in start": {""},
	})
}

// TestNamespace: in a PID namespace, threads have the numbers that they have there.
func TestNamespace(t *testing.T) {
	needs.Real(t, needs.Root, debianRuby)
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
	await.UntilOr(t, func() bool {
		if err := p.Stacks(tids, &s); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(s.Stacks, func(s interpreter.Stack) bool {
			return p.Has(s, checked.Stacks["block"])
		})
	}, func() string { return fmt.Sprintf("%+v", s) })
}

// TestForked: the main thread of a process that another one forked, as workers of Puma are.
func TestForked(t *testing.T) {
	needs.Real(t, debianRuby)
	p := start(t, nil, "fork")
	child, err := Language.Open(hostfs.Root{}, p.Threads["child"])
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	var s interpreter.Sample
	await.UntilOr(t, func() bool {
		if err := child.Stacks([]int{p.Threads["child"]}, &s); err != nil {
			t.Fatal(err)
		}
		return len(s.Stacks) == 1 && p.Has(s.Stacks[0], []string{"block in forked # in a child"})
	}, func() string { return fmt.Sprintf("%+v", s) })
}

// TestEnd: the process ends while it is open.
func TestEnd(t *testing.T) {
	needs.Real(t, debianRuby)
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

// TestNoRuby: a process of another program.
func TestNoRuby(t *testing.T) {
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
