package host

import (
	"os"
	"testing"
)

// manualClock is set by the test.
type manualClock int64

func (c *manualClock) Now() int64 { return int64(*c) }

// TestQuotas: the level that throttled is named, and none where it could have been several.
func TestQuotas(t *testing.T) {
	const pod, ctr = "/sys/fs/cgroup/pod/", "/sys/fs/cgroup/pod/app/"
	now := manualClock(1e9)
	root := tree(t, map[string]string{
		"/proc/self/mountinfo": v2Mounts, "/proc/77/cgroup": "0::/pod/app\n", "/proc/78/cgroup": "0::/\n",
		pod + "cpu.max": "200000 100000\n", pod + "cpu.stat": "nr_periods 9\nnr_throttled 0\n",
		ctr + "cpu.max": "25000 100000\n", ctr + "cpu.stat": "nr_periods 9\nnr_throttled 4\n",
	})
	q := &Quotas{FS: root, Clock: &now}
	want := func(what string, tid int, cgroup string, cores float64) {
		t.Helper()
		if g, c := q.Of(tid); g != cgroup || c != cores {
			t.Errorf("%s: %q, %v cores; want %q, %v", what, g, c, cgroup, cores)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(root.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		now += manualClock(quotaAge)
	}
	want("only the container throttled", 77, "/pod/app", 0.25)
	want("a thread without a quota", 78, "", 0)
	want("a thread that does not exist", 79, "", 0)
	write(pod+"cpu.stat", "nr_throttled 1\n")
	want("both have, the pod lately", 77, "/pod", 2)
	write(ctr+"cpu.stat", "nr_throttled 5\n")
	want("both have, the container lately", 77, "/pod/app", 0.25)
	write(ctr+"cpu.stat", "nr_throttled 6\n")
	write(pod+"cpu.stat", "nr_throttled 2\n")
	want("both have lately", 77, "", 0)
	write(ctr+"cpu.max", "max 100000\n")
	want("the container's limit was taken away", 77, "/pod", 2)
	write("/proc/77/cgroup", "0::/\n")
	want("the thread has ended and is a zombie, which is in the root", 77, "/pod", 2)
	if err := os.Remove(root.Path("/proc/77/cgroup")); err != nil {
		t.Fatal(err)
	}
	want("the thread has ended", 77, "/pod", 2)

	q = &Quotas{Clock: &now, FS: tree(t, map[string]string{
		"/proc/self/mountinfo": v1Mounts, "/proc/77/cgroup": "4:cpu,cpuacct:/redis\n0::/x\n",
		"/sys/fs/cgroup/cpu,cpuacct/redis/cpu.cfs_quota_us":  "20000\n",
		"/sys/fs/cgroup/cpu,cpuacct/redis/cpu.cfs_period_us": "100000\n",
		"/sys/fs/cgroup/cpu,cpuacct/redis/cpu.stat":          "nr_throttled 0\n",
	})}
	want("v1, one quota, whose throttling is not counted yet", 77, "/redis", 0.2)
}
