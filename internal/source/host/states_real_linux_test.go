package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/recording"
)

func throttledNs(t *testing.T, dir string) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := parseCPUStat(b)
	return s.throttledNs
}

func TestThrottledSpans(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Benchmark, needs.CgroupV1CPU)
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
		await.Until(t, "the server is throttled for two seconds",
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
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22002)
	var length frozenFor
	sink := watchFor(t, redis.Process.Pid, 22002, func(sink *memory) {
		length = freeze(t, sink, func() { sh(t, "kill -STOP %d", redis.Process.Pid) },
			func() { sh(t, "kill -CONT %d", redis.Process.Pid) })
	})
	length.check(t, sink)
}

// frozenFor is for how long a process was frozen, at least and at most.
type frozenFor struct{ least, most time.Duration }

// freeze stops a process for half a second during a watch.
func freeze(t *testing.T, sink *memory, stop, goOn func()) (length frozenFor) {
	t.Helper()
	begin := time.Now()
	stop()
	stopped := time.Now()
	await.Pass(500 * time.Millisecond)
	length.least = time.Since(stopped)
	goOn()
	length.most = time.Since(begin)
	await.Until(t, "the stop is seen", func() bool { return len(sink.kind(recording.KindFrozen)) > 0 })
	return length
}

// check wants one span of this length; half a reading at either end is estimated, and on a busy machine readings come
// late.
func (f frozenFor) check(t *testing.T, sink *memory) recording.Event {
	t.Helper()
	show(t, sink)
	list := sink.kind(recording.KindFrozen)
	if len(list) != 1 {
		t.Fatalf("frozen %d times: %v", len(list), list)
	}
	ns, _ := sink.value(recording.SubjectSelf, "host.late_ns")
	late := time.Duration(ns)
	if d := time.Duration(list[0].DurationNs); d < f.least*8/10-late || d > f.most+f.most/5+late {
		t.Errorf("frozen for %v, it was between %v and %v, and readings were late by %v", d, f.least, f.most, late)
	}
	return list[0]
}

func TestFrozenByFreezer(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	dir := makeCgroup(t, "freezer", "slowpath-test-freezer")
	redis := startRedis(t, 22003)
	write(t, dir+"/cgroup.procs", strconv.Itoa(redis.Process.Pid))
	thaw := func() { write(t, dir+"/freezer.state", "THAWED") }
	t.Cleanup(thaw)
	var length frozenFor
	sink := watchFor(t, redis.Process.Pid, 22003, func(sink *memory) {
		length = freeze(t, sink, func() { write(t, dir+"/freezer.state", "FROZEN") }, thaw)
	})
	if d := recording.DetailOf[recording.ThreadDetail](length.check(t, sink)); d.Cgroup != "/slowpath-test-freezer" {
		t.Errorf("detail %+v", d)
	}
	if n := sink.total(recording.KindBlocked); n > 50e6 {
		t.Errorf("blocked %v while frozen", time.Duration(n))
	}
}

func TestFrozenByCgroupV2(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	dir := makeCgroup(t, "unified", "slowpath-test-v2")
	redis := startRedis(t, 22004)
	write(t, dir+"/cgroup.procs", strconv.Itoa(redis.Process.Pid))
	thaw := func() { write(t, dir+"/cgroup.freeze", "0") }
	t.Cleanup(thaw)
	var length frozenFor
	sink := watchFor(t, redis.Process.Pid, 22004, func(sink *memory) {
		length = freeze(t, sink, func() { write(t, dir+"/cgroup.freeze", "1") }, thaw)
	})
	length.check(t, sink)
}

func TestNeighbourOnTheSameCPU(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Benchmark, needs.CPUs(2))
	redis := startRedis(t, 22005)
	sh(t, "taskset -a -cp 1 %d", redis.Process.Pid)
	spinner := start(t, "taskset", "-c", "1", "sh", "-c", "while :; do :; done")
	load := start(t, "redis-benchmark", "-p", "22005", "-t", "get", "-n", "100000000", "-c", "10", "-q")
	sink := watchFor(t, redis.Process.Pid, 22005, func(sink *memory) {
		await.Until(t, "the server waits for the process that spins, which is named", func() bool {
			return sink.total(recording.KindRunQueue) > 300e6 && names(sink, spinner.Process.Pid)
		})
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
}

// names reports whether a process is named as a neighbour.
func names(sink *memory, pid int) bool {
	for _, e := range sink.kind(recording.KindNeighbours) {
		for _, n := range recording.DetailOf[[]recording.Neighbour](e) {
			// how much it gets is for all others on this machine to say
			if n.PID == pid && n.Cores > 0 {
				return true
			}
		}
	}
	return false
}

func TestBusyInLua(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.RedisCLI)
	redis := startRedis(t, 22006)
	// On a machine with other work, part of the half second goes to the run queue.
	seen := func(sink *memory) int64 { return sink.total(recording.KindBusy) + sink.total(recording.KindRunQueue) }
	sink := watchFor(t, redis.Process.Pid, 22006, func(sink *memory) {
		sh(t, "redis-cli -p 22006 eval 'local t=redis.call(\"TIME\") local n=0 repeat n=n+1 local "+
			"u=redis.call(\"TIME\") until (u[1]-t[1])*1000000+u[2]-t[2] > 500000 return n' 0")
		await.Until(t, "the script is seen", func() bool { return seen(sink) >= 80e6 })
	})
	show(t, sink)
	if busy := sink.total(recording.KindBusy); busy > 1000e6 {
		t.Errorf("busy %v in a script of half a second", time.Duration(busy))
	}
}
