package sampler

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
	"slowpath/internal/source/hostfs"
)

// burnGo burns CPU in functions, or in the kernel.
const burnGo = `package main

import "os"

var burnt int

//go:noinline
func outer(n int) { inner(n); burnt++ }

//go:noinline
func inner(n int) {
	for i := range 100_000 {
		burnt += i * n
	}
}

func main() {
	if len(os.Args) == 1 {
		for i := 0; ; i++ {
			outer(i)
		}
	}
	f, err := os.Open("/dev/zero")
	b := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Read(b)
	}
	panic(err)
}
`

// builtGo builds it as people do: the tool that runs tests leaves what debuggers need out.
func builtGo(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module burn\ngo 1.26\n", "main.go": burnGo} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", "burn"}, flags...), ".")...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir + "/burn"
}

// burner starts a program, and gives its number.
func burner(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid
}

// sampled watches a process until a sample is as wanted.
func sampled(t *testing.T, pid int, what string, wanted func(Sample) bool) {
	t.Helper()
	sampledTarget(t, Target{PID: pid}, what, wanted)
}

func sampledTarget(t *testing.T, target Target, what string, wanted func(Sample) bool) {
	t.Helper()
	pid := target.PID
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var seen []Sample
	found := false
	s, err := Load(Options{
		FS: hostfs.Root{}, Clock: clock.New(),
		Blind: func(_ int, what, why, _ string) { t.Log(what, why) },
		Take: func(s Sample) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, s)
			if s.PID != pid {
				t.Errorf("a sample of process %d", s.PID)
			}
			if wanted(s) {
				found = true
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start([]Target{target}); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	c, err := s.Counts()
	if err != nil || c.Seen < int64(len(seen)) {
		t.Errorf("counts %+v, %v, and %d samples", c, err, len(seen))
	}
	if !found {
		t.Fatalf("no sample %s among %d: %+v", what, len(seen), seen[:min(len(seen), 10)])
	}
}

func TestFunctionOfGo(t *testing.T) {
	needs.Real(t, needs.BPF)
	sampled(t, burner(t, exec.CommandContext(t.Context(), builtGo(t))), "in inner, called by outer",
		func(s Sample) bool {
			return !s.Cut && s.Thread == "burn" && slices.Equal(s.User[max(len(s.User)-4, 0):], []string{
				"runtime.main",
				"main.main", "main.outer", "main.inner",
			})
		})
}

// TestFunctionOfStrippedGo: without symbols and tables for debuggers. The caller of a function without a frame is lost.
func TestFunctionOfStrippedGo(t *testing.T) {
	needs.Real(t, needs.BPF)
	sampled(t, burner(t, exec.CommandContext(t.Context(), builtGo(t, "-ldflags=-s -w"))), "in inner",
		func(s Sample) bool {
			return !s.Cut && slices.Equal(s.User[max(len(s.User)-3, 0):], []string{
				"runtime.main", "main.main",
				"main.inner",
			})
		})
}

func TestFunctionOfTheKernel(t *testing.T) {
	needs.Real(t, needs.BPF)
	sampled(t, burner(t, exec.CommandContext(t.Context(), builtGo(t), "kernel")), "in a read", func(s Sample) bool {
		return inOrder(s.Kernel, "vfs_read") && inOrder(s.User, "main.main", "os.(*File).Read")
	})
}

// burnC is compiled without frame pointers; its main is called by the first function of the thread.
const burnC = `#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) long inner(long n)
{
	volatile long sum = 0;
	for (long i = 0; i < 100000; i++)
		sum += i * n;
	return sum;
}
static __attribute__((noinline)) long outer(long n)
{
	char room[300];
	room[n % 300] = 1;
	long r = inner(n) + room[n % 7];
	return r + 1;
}
static int compare(const void *a, const void *b) { return outer(*(const int *)a) > outer(*(const int *)b); }
int main(void)
{
	int all[] = {5, 3, 8, 1};
	puts("ready");
	fflush(stdout);
	for (;;)
		qsort(all, 4, sizeof(int), compare);
}
`

// TestCallersWithoutFramePointers: through a library (qsort of libc calls back), and in a program that is stripped.
func TestCallersWithoutFramePointers(t *testing.T) {
	needs.Real(t, needs.BPF, needs.GCC)
	for name, flags := range map[string][]string{"with symbols": nil, "stripped, its functions exported": {
		"-s",
		"-rdynamic", "-Dstatic=",
	}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/burn.c", []byte(burnC), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{
				"-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", dir + "/burn",
				dir + "/burn.c",
			}, flags...)
			if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			c := exec.CommandContext(t.Context(), dir+"/burn")
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			pid := burner(t, c)
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			sampled(t, pid, "in inner, called by outer, compare, qsort, main", func(s Sample) bool {
				return !s.Cut && s.Thread == "burn" && inOrder(s.User, "main", "qsort", "compare", "outer", "inner")
			})
		})
	}
}

// burnThreads burns CPU in two threads of one name, in functions of their own.
const burnThreads = `#include <pthread.h>
#include <stdio.h>
static volatile long sum;
static __attribute__((noinline)) void first(void) { for (long i = 0; i < 1000000; i++) sum += i; }
static __attribute__((noinline)) void second(void) { for (long i = 0; i < 1000000; i++) sum += i; }
static void *other(void *unused) { for (;;) second(); }
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, other, 0);
	puts("ready");
	fflush(stdout);
	for (;;)
		first();
}
`

// TestSingleThread: of a process of which one thread is asked for no other is sampled, and only in user space.
func TestSingleThread(t *testing.T) {
	needs.Real(t, needs.BPF, needs.GCC)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/burn.c", []byte(burnThreads), 0o600); err != nil {
		t.Fatal(err)
	}
	gcc := exec.CommandContext(t.Context(), "gcc", "-O1", "-pthread", "-o", dir+"/burn", dir+"/burn.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := exec.CommandContext(t.Context(), dir+"/burn")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	pid := burner(t, c)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	n := 0
	sampledTarget(t, Target{PID: pid, TID: pid}, "after 20 of the first thread", func(s Sample) bool {
		if s.TID != pid || inOrder(s.User, "second") || len(s.Kernel) > 0 || s.CPU != time.Second/Rate {
			t.Errorf("%+v", s)
		}
		if inOrder(s.User, "main", "first") {
			n++
		}
		return n == 20
	})
}

func inOrder(frames []string, names ...string) bool {
	for _, f := range frames {
		if len(names) > 0 && strings.HasPrefix(f, names[0]) {
			names = names[1:]
		}
	}
	return len(names) == 0
}
