package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

const node = "127.0.0.1:22000"

// TestMain lets one run of these tests at a time use the ports and cgroups of this host. A worker of the fuzzer would
// wait for its own parent, which has the lock.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-test.fuzzworker") {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "slowpath-host-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	os.Exit(m.Run())
}

// needReal skips a test that needs root and Redis.
func needReal(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real processes: not with -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("needs redis-server")
	}
}

// start starts a program and ends it with the test.
func start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// startRedis starts a server and waits until it listens.
func startRedis(t *testing.T, port int, args ...string) *exec.Cmd {
	t.Helper()
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Fatalf("another program listens at port %d", port)
	}
	cmd := start(t, "redis-server", append([]string{
		"--port", strconv.Itoa(port), "--save", "", "--logfile",
		"/dev/null",
	}, args...)...)
	eventually(t, "redis listens", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return cmd
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	const patience = time.Minute
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not within %v: %s", patience, what)
}

// makeCgroup makes a v1 cgroup that is removed after the processes of the test have ended. Call it before start.
func makeCgroup(t *testing.T, controller, name string) string {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup", controller, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		t.Skipf("needs a writable cgroup v1 %s controller: %v", controller, err)
	}
	t.Cleanup(func() {
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s could not be removed", dir)
	})
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// watchFor watches a process while do runs.
func watchFor(t *testing.T, pid, port int, do func(*memory)) *memory {
	t.Helper()
	p, err := Locate(nil, Query{Listen: fmt.Sprintf("127.0.0.1:%d", port), WantPID: pid})
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != pid || p.Foreign {
		t.Fatalf("located %+v, want PID %d", p, pid)
	}
	sink := &memory{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, Options{Sink: sink, Node: node, Process: p}) }()
	eventually(t, "the watch has begun", func() bool { _, ok := sink.value(node, "main.delay_ns"); return ok })
	do(sink)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return sink
}

func show(t *testing.T, sink *memory) {
	t.Helper()
	for _, kind := range []string{"throttled", "run-queue", "frozen", "blocked", "busy"} {
		list := sink.kind(kind)
		t.Logf("%s: %d spans, %v", kind, len(list), time.Duration(sink.total(kind)))
		for i, e := range list {
			if i < 6 {
				t.Logf("   %d +%v %s", e.TimeNs/1e6%1e5, time.Duration(e.DurationNs), e.Detail)
			}
		}
	}
}

func throttledNs(t *testing.T, dir string) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := parseCPUStat(b)
	return s.throttledNs
}

// endLoad ends a load of a server, and waits until the server has nothing to do: all of its waits are counted then.
func endLoad(t *testing.T, load, server *exec.Cmd) {
	t.Helper()
	_ = load.Process.Kill()
	_ = load.Wait() // it was killed
	eventually(t, "the server sleeps", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		stat, ok := parseStat(b)
		return ok && stat.state == 'S'
	})
}

func TestThrottledSpans(t *testing.T) {
	needReal(t)
	dir := makeCgroup(t, "cpu", "slowpath-test-throttle")
	write(t, dir+"/cpu.cfs_quota_us", "10000") // a tenth of a core: on a busy machine, too, the server gets more
	acct := dir
	if _, err := os.Stat(dir + "/cpuacct.usage"); err != nil {
		acct = makeCgroup(t, "cpuacct", "slowpath-test-throttle")
	}
	redis := startRedis(t, 22001)
	for _, group := range []string{acct, dir} {
		write(t, group+"/cgroup.procs", strconv.Itoa(redis.Process.Pid))
	}
	var before, after int64
	sink := watchFor(t, redis.Process.Pid, 22001, func(*memory) {
		before = throttledNs(t, dir)
		// A millisecond or so of the server each: it wants all of a CPU, however little the clients get.
		load := start(t, "redis-benchmark", "-p", "22001", "-n", "100000000", "-c", "10", "-q", "eval",
			"local n = 0 for i = 1, 1e5 do n = n + i end return n", "0")
		eventually(t, "the server is throttled for two seconds",
			func() bool { return throttledNs(t, dir)-before > 2e9 })
		endLoad(t, load, redis)
		after = throttledNs(t, dir)
	})
	show(t, sink)
	got, want := sink.total(recording.KindThrottled), after-before
	t.Logf("throttled: spans %v, cpu.stat %v", time.Duration(got), time.Duration(want))
	if float64(got) < 0.85*float64(want) || float64(got) > 1.15*float64(want) {
		t.Errorf("spans of %v, cpu.stat says %v", time.Duration(got), time.Duration(want))
	}
	for _, e := range sink.kind(recording.KindThrottled) {
		if d := recording.DetailOf[recording.ThreadDetail](e); d.Cgroup != "/slowpath-test-throttle" ||
			d.TID != redis.Process.Pid {
			t.Errorf("detail %s", e.Detail)
		}
	}
	if v, _ := sink.value("cgroup:/slowpath-test-throttle", "cpu.quota_us"); v != 10000 {
		t.Errorf("quota_us %v", v)
	}
	// A kernel without faults hands out the quota of each period in which it throttles, but for a slice of 5 ms of each
	// CPU, and what CPUs overdrew within a tick of 10 ms before.
	used, known := sink.value("cgroup:/slowpath-test-throttle", "cpu.usage_ns")
	periods, _ := sink.value("cgroup:/slowpath-test-throttle", "cpu.nr_throttled")
	if slack := float64(2*10e6 + runtime.NumCPU()*15e6); !known || periods*10e6-used > slack {
		t.Errorf("used %v in %v throttled periods of 10 ms each", time.Duration(used), periods)
	}
	t.Logf("used %v in %v throttled periods of 10 ms each", time.Duration(used), periods)
}

func TestFrozenBySignal(t *testing.T) {
	needReal(t)
	redis := startRedis(t, 22002)
	var length frozenFor
	sink := watchFor(t, redis.Process.Pid, 22002, func(*memory) {
		length = freeze(func() { sh(t, "kill -STOP %d", redis.Process.Pid) },
			func() { sh(t, "kill -CONT %d", redis.Process.Pid) })
	})
	length.check(t, sink)
}

// frozenFor is for how long a process was frozen, at least and at most.
type frozenFor struct{ least, most time.Duration }

// freeze stops a process for half a second during a watch.
func freeze(stop, goOn func()) (length frozenFor) {
	const around, half = 200 * time.Millisecond, 500 * time.Millisecond
	time.Sleep(around)
	begin := time.Now()
	stop()
	stopped := time.Now()
	time.Sleep(half)
	length.least = time.Since(stopped)
	goOn()
	length.most = time.Since(begin)
	time.Sleep(around)
	return length
}

// check wants one span of this length; half a reading at either end is estimated, and on a busy machine a reading comes
// late.
func (f frozenFor) check(t *testing.T, sink *memory) recording.Event {
	t.Helper()
	show(t, sink)
	list := sink.kind(recording.KindFrozen)
	if len(list) != 1 {
		t.Fatalf("frozen %d times: %v", len(list), list)
	}
	if d := time.Duration(list[0].DurationNs); d < f.least*8/10 || d > f.most+f.most/5 {
		t.Errorf("frozen for %v, it was between %v and %v", d, f.least, f.most)
	}
	return list[0]
}

func sh(t *testing.T, format string, args ...any) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", fmt.Sprintf(format, args...)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, strings.TrimSpace(string(out)))
	}
}

func TestFrozenByFreezer(t *testing.T) {
	needReal(t)
	dir := makeCgroup(t, "freezer", "slowpath-test-freezer")
	redis := startRedis(t, 22003)
	write(t, dir+"/cgroup.procs", strconv.Itoa(redis.Process.Pid))
	thaw := func() { write(t, dir+"/freezer.state", "THAWED") }
	t.Cleanup(thaw)
	var length frozenFor
	sink := watchFor(t, redis.Process.Pid, 22003, func(*memory) {
		length = freeze(func() { write(t, dir+"/freezer.state", "FROZEN") }, thaw)
	})
	if d := recording.DetailOf[recording.ThreadDetail](length.check(t, sink)); d.Cgroup != "/slowpath-test-freezer" {
		t.Errorf("detail %+v", d)
	}
	if n := sink.total(recording.KindBlocked); n > 50e6 {
		t.Errorf("blocked %v while frozen", time.Duration(n))
	}
}

func TestFrozenByCgroupV2(t *testing.T) {
	needReal(t)
	dir := makeCgroup(t, "unified", "slowpath-test-v2")
	redis := startRedis(t, 22004)
	write(t, dir+"/cgroup.procs", strconv.Itoa(redis.Process.Pid))
	thaw := func() { write(t, dir+"/cgroup.freeze", "0") }
	t.Cleanup(thaw)
	var length frozenFor
	sink := watchFor(t, redis.Process.Pid, 22004, func(*memory) {
		length = freeze(func() { write(t, dir+"/cgroup.freeze", "1") }, thaw)
	})
	length.check(t, sink)
}

func TestNeighbourOnTheSameCPU(t *testing.T) {
	needReal(t)
	redis := startRedis(t, 22005)
	sh(t, "taskset -a -cp 1 %d", redis.Process.Pid)
	spinner := start(t, "taskset", "-c", "1", "sh", "-c", "while :; do :; done")
	load := start(t, "redis-benchmark", "-p", "22005", "-t", "get", "-n", "100000000", "-c", "10", "-q")
	sink := watchFor(t, redis.Process.Pid, 22005, func(*memory) {
		time.Sleep(2500 * time.Millisecond)
		endLoad(t, load, redis)
	})
	show(t, sink)
	delay, _ := sink.value(node, "main.delay_ns")
	if got := sink.total(recording.KindRunQueue); got < 200e6 || float64(got) > 1.2*delay {
		t.Errorf("run-queue %v, main.delay_ns %v", time.Duration(got), time.Duration(int64(delay)))
	}
	if sink.total(recording.KindThrottled) > 0 {
		t.Error("throttled without a quota")
	}
	named := false
	for _, e := range sink.kind(recording.KindNeighbours) {
		for _, n := range recording.DetailOf[[]recording.Neighbour](e) {
			// how much it gets is for all others on this machine to say
			named = named || n.PID == spinner.Process.Pid && n.Cores > 0
		}
	}
	if !named {
		t.Errorf("the spinning process %d is not named: %v", spinner.Process.Pid, sink.kind(recording.KindNeighbours))
	}
}

func TestBusyInLua(t *testing.T) {
	needReal(t)
	redis := startRedis(t, 22006)
	sink := watchFor(t, redis.Process.Pid, 22006, func(*memory) {
		time.Sleep(200 * time.Millisecond)
		sh(t, "redis-cli -p 22006 eval 'local t=redis.call(\"TIME\") local n=0 repeat n=n+1 local "+
			"u=redis.call(\"TIME\") until (u[1]-t[1])*1000000+u[2]-t[2] > 500000 return n' 0")
		time.Sleep(200 * time.Millisecond)
	})
	show(t, sink)
	// On a machine with other work, part of the half second goes to the run queue.
	busy, queue := sink.total(recording.KindBusy), sink.total(recording.KindRunQueue)
	if busy+queue < 80e6 || busy > 1000e6 {
		t.Errorf("busy %v, run-queue %v", time.Duration(busy), time.Duration(queue))
	}
}
