//go:build linux

package tap

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// threadOf finds a thread's clock in the programs.
func threadOf(t *testing.T, l *loaded, tid int) kernelThread {
	t.Helper()
	var th kernelThread
	for slot := range uint32(64) {
		if err := l.coll.Maps["threads"].Lookup(slot, &th); err == nil && th.Tid == uint32(tid) {
			return th
		}
	}
	t.Fatalf("thread %d has no clock", tid)
	return th
}

// total is the clocks of a thread at its last change of state, and the time of it.
func total(th kernelThread) (off, at int64) {
	for _, ns := range th.Clk.Ns {
		off += int64(ns)
	}
	return off, int64(th.Since)
}

// schedstat is the time in nanoseconds that a thread ran, and that it waited for a CPU, by the kernel's own count.
func schedstat(t *testing.T, tid int) (run, delay int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
	if err != nil {
		t.Skip("the kernel has no schedstat: ", err)
	}
	if _, err := fmt.Sscan(string(b), &run, &delay); err != nil {
		t.Fatal(err)
	}
	return run, delay
}

// TestClocksAddUp: a thread's clocks, with the time on the CPU by the kernel's own count, add up to the wall time,
// whatever it does and whoever else wants the CPU.
func TestClocksAddUp(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	port := startServer(t)
	l := openRaw(t, port, constants{})
	defer l.finish(t)
	pid := serverPID(t, port)
	all := stampers(t, port, 3, 2)
	run(t, all, 5) // the thread has clocks after it
	for range 3 {
		hog := exec.Command("sh", "-c", "while :; do :; done")
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hog.Process.Kill(); _ = hog.Wait() })
	}
	const rounds = 8
	var waited, delay int64 // for the CPU: by the thread's clock, by the kernel's own count
	for round := range rounds {
		begin := settled(t, l, pid)
		until := time.Now().Add(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		for time.Now().Before(until) {
			run(t, all, 5)
		}
		end := settled(t, l, pid)
		off, wall, on := end.off-begin.off, end.at-begin.at, end.run-begin.run
		if sum := off + on; sum < wall-wall/20-5e6 || sum > wall+wall/20+5e6 {
			t.Errorf("round %d: clocks %d + on CPU %d = %d, wall %d", round, off, on, sum, wall)
		}
		if off > wall {
			t.Errorf("round %d: more time off the CPU (%d) than there was (%d)", round, off, wall)
		}
		waited += int64(end.Clk.Ns[runnable] - begin.Clk.Ns[runnable])
		delay += end.delay - begin.delay
	}
	// A wake-up that is missed makes a wait for the CPU a sleep; the clock begins a little before the kernel's, with
	// the waking.
	if waited < delay/2 || waited > delay+delay/4+rounds*5e6 {
		t.Errorf("%d ns in the run queue, by the kernel's own count %d", waited, delay)
	}
}

// rest is a thread's clock while it sleeps, and the kernel's own counts of the same time.
type rest struct {
	kernelThread
	off, at    int64 // see total
	run, delay int64 // see schedstat
}

// settled reads a thread's clock, and the kernel's counts, in one sleep of the thread: none of them changes meanwhile.
func settled(t *testing.T, l *raw, tid int) rest {
	t.Helper()
	var found rest
	await.Until(t, "the thread sleeps", func() bool {
		a := threadOf(t, l.loaded, tid)
		run, delay := schedstat(t, tid)
		b := threadOf(t, l.loaded, tid)
		off, at := total(b)
		found = rest{b, off, at, run, delay}
		return a.State == uint32(asleep) && b.State == uint32(asleep) && a.Since == b.Since && a.Waking <= a.Since &&
			b.Waking <= b.Since
	})
	return found
}

func serverPID(t *testing.T, port int) int {
	t.Helper()
	out, err := exec.Command("redis-cli", "-p", fmt.Sprint(port), "info", "server").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), "process_id:")
	pid := 0
	if _, err := fmt.Sscan(rest, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// serverBound is a load for redis-benchmark of a millisecond or so of the server for each call: it wants all of a CPU,
// however little of one the clients get on a busy machine.
var serverBound = []string{"-c", "10", "-n", "100000000", "-q", "eval", "local n = 0 for i = 1, 1e5 do n = n + i end " +
	"return n", "0"}

// TestThrottledClock: the time a thread was seen throttled is what its cgroup says.
func TestThrottledClock(t *testing.T) {
	needs.Real(t, needs.BPF, needs.CgroupV1CPU, needs.RedisServer, needs.RedisCLI, needs.Benchmark)
	const root = "/sys/fs/cgroup/cpu"
	dir := fmt.Sprintf("%s/slowpath-test-%d", root, os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	write := func(name, text string) {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	port := startServer(t)
	l := openRaw(t, port, constants{})
	defer l.finish(t)
	pid := serverPID(t, port)
	all := stampers(t, port, 3, 50)
	run(t, all, 2)
	write("cpu.cfs_quota_us", "5000")
	write("tasks", fmt.Sprint(pid))
	defer os.WriteFile(root+"/tasks", fmt.Append(nil, pid), 0o644) //nolint:errcheck // to remove the directory
	before := threadOf(t, l.loaded, pid).Clk.Ns[throttled]
	// timeout ends it
	_ = exec.Command("timeout", append([]string{"2", "redis-benchmark", "-p", fmt.Sprint(port)},
		serverBound...)...).Run()
	seen := int64(settled(t, l, pid).Clk.Ns[throttled] - before)
	stat, err := os.ReadFile(dir + "/cpu.stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), "throttled_time ")
	var said int64
	if _, err := fmt.Sscan(rest, &said); err != nil {
		t.Fatal(err)
	}
	t.Logf("throttled: clock %.3f ms, cpu.stat %.3f ms", float64(seen)/1e6, float64(said)/1e6)
	if differ := seen - said; said < 100e6 || differ > said/10 || -differ > said/10 {
		t.Errorf("the thread was seen throttled for %d ns, its cgroup says %d", seen, said)
	}
}
