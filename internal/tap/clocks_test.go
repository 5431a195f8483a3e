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

// total is the clocks of a thread at its last change of state, and that moment.
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
		t.Skip("needs schedstat: ", err)
	}
	if _, err := fmt.Sscan(string(b), &run, &delay); err != nil {
		t.Skip("needs schedstat: ", err)
	}
	return run, delay
}

// TestClocksAddUp: a thread's clocks, with the time on the CPU by the kernel's own count, add up to the wall time, whatever it does and whoever
// else wants the CPU.
func TestClocksAddUp(t *testing.T) {
	port := startServer(t)
	l := openRaw(t, port, constants{})
	defer l.finish(t)
	pid := serverPID(t, port)
	all := stampers(t, port, 3, 2)
	run(t, all, 5) // the thread has a clock from now on
	for range 3 {
		hog := exec.Command("sh", "-c", "while :; do :; done")
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hog.Process.Kill(); _ = hog.Wait() })
	}
	for round := range 8 {
		run0, delay0 := schedstat(t, pid)
		begin := settled(t, l, pid)
		off0, at0 := total(begin)
		until := time.Now().Add(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		for time.Now().Before(until) {
			run(t, all, 5)
		}
		run1, delay1 := schedstat(t, pid)
		end := settled(t, l, pid)
		off1, at1 := total(end)
		wall, on := at1-at0, run1-run0
		// schedstat is read a little before the clocks, and grows in ticks while the thread runs
		if sum := off1 - off0 + on; sum < wall-wall/20-5e6 || sum > wall+wall/20+5e6 {
			t.Errorf("round %d: clocks %d + on CPU %d = %d, wall %d", round, off1-off0, on, sum, wall)
		}
		if off1-off0 > wall {
			t.Errorf("round %d: more time off the CPU (%d) than there was (%d)", round, off1-off0, wall)
		}
		// A wake-up that is missed makes a wait for the CPU a sleep; the clock begins a little before the kernel's, with the waking.
		if waited, delay := int64(end.Clk.Ns[runnable]-begin.Clk.Ns[runnable]), delay1-delay0; waited < delay-delay/20-2e6 || waited > delay+delay/4+5e6 {
			t.Errorf("round %d: %d ns in the run queue, by the kernel's own count %d", round, waited, delay)
		}
	}
}

// settled reads a thread's clock when it has not changed for a moment: the thread sleeps.
func settled(t *testing.T, l *raw, tid int) kernelThread {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		a := threadOf(t, l.loaded, tid)
		time.Sleep(3 * time.Millisecond)
		if b := threadOf(t, l.loaded, tid); a.Since == b.Since && b.State == asleep || time.Now().After(deadline) {
			return b
		}
	}
}

func serverPID(t *testing.T, port int) int {
	t.Helper()
	out, err := exec.Command("redis-cli", "-p", fmt.Sprint(port), "info", "server").Output()
	if err != nil {
		t.Skip("needs redis-cli: ", err)
	}
	_, rest, _ := strings.Cut(string(out), "process_id:")
	pid := 0
	if _, err := fmt.Sscan(rest, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestThrottledClock: the time a thread was seen throttled is what its cgroup says.
func TestThrottledClock(t *testing.T) {
	const root = "/sys/fs/cgroup/cpu"
	dir := fmt.Sprintf("%s/slowpath-test-%d", root, os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("needs cgroup v1 with the cpu controller, and root: ", err)
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
	write("cpu.cfs_quota_us", "10000")
	write("tasks", fmt.Sprint(pid))
	defer os.WriteFile(root+"/tasks", fmt.Append(nil, pid), 0o644) //nolint:errcheck // so that the directory can be removed
	before := threadOf(t, l.loaded, pid).Clk.Ns[throttled]
	// as much as the server can do, for two seconds; it is ended by timeout
	_ = exec.Command("timeout", "2", "redis-benchmark", "-p", fmt.Sprint(port), "-P", "32", "-c", "20", "-n", "100000000", "-t", "set", "-q").Run()
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
	if differ := seen - said; said < 100e6 || differ > said/20 || -differ > said/20 {
		t.Errorf("the thread was seen throttled for %d ns, its cgroup says %d", seen, said)
	}
}
