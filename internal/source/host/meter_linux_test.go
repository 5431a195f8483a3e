package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slowpath/internal/source/hostfs"
)

func TestMeterOfNobody(t *testing.T) {
	if _, err := NewMeter(nil, 1<<22+1); !errors.Is(err, ErrNotHere) { // above the largest pid (PID_MAX_LIMIT)
		t.Errorf("got %v", err)
	}
}

// TestMeterQuota: a host whose files are in a directory, with a quota at two levels of each version of cgroups.
func TestMeterQuota(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []QuotaUsage
	}{
		{"v1", map[string]string{
			"proc/7/cgroup": "4:cpu,cpuacct:/pod/redis\n0::/\n",
			"proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup " +
				"rw,cpu,cpuacct\n",
			"sys/fs/cgroup/cpu/pod/redis/x": "",
			"sys/fs/cgroup/cpu/pod/redis/cpu.stat": "nr_periods 50\nnr_throttled 40\nthrottled_time " +
				"3000000000\n",
			"sys/fs/cgroup/cpu/pod/redis/cpu.cfs_quota_us":  "20000\n",
			"sys/fs/cgroup/cpu/pod/redis/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/pod/cpu.stat":                "nr_periods 60\nnr_throttled 1\nthrottled_time 5\n",
			"sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us":        "400000\n",
			"sys/fs/cgroup/cpu/pod/cpu.cfs_period_us":       "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":            "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":           "100000\n",
		}, []QuotaUsage{{"/pod/redis", 0.2, 50, 40, 3 * time.Second}, {"/pod", 4, 60, 1, 5}}},
		{"v2", map[string]string{
			"proc/7/cgroup":                       "0::/redis.service\n",
			"proc/self/mountinfo":                 "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/redis.service/cpu.max": "50000 100000\n",
			"sys/fs/cgroup/redis.service/cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 9\nthrottled_usec " +
				"450000\n",
		}, []QuotaUsage{{"/redis.service", 0.5, 10, 9, 450 * time.Millisecond}}},
		{"none", map[string]string{"proc/7/cgroup": "0::/\n", "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw " +
			"- cgroup2 cgroup rw\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.files["proc/7/stat"] = statLine
			c.files["proc/7/task/7/stat"] = statLine
			c.files["proc/7/task/7/schedstat"] = "100 20 3\n"
			c.files["proc/7/task/7/comm"] = "redis-server\n"
			c.files["proc/7/task/9/schedstat"] = "5 6 7\n"
			c.files["proc/7/task/9/comm"] = "io_thd_1\n"
			c.files["proc/7/status"] = "Name:\tredis-server\nCpus_allowed_list:\t0,2-3\n"
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m, err := NewMeter(Root{Root: hostfs.Root{Dir: dir}}, 7)
			if err != nil {
				t.Fatal(err)
			}
			u, err := m.Read()
			if err != nil {
				t.Fatal(err)
			}
			if len(u.Quotas) != len(c.want) {
				t.Fatalf("got %+v, want %+v", u.Quotas, c.want)
			}
			for i := range c.want {
				if u.Quotas[i] != c.want[i] {
					t.Errorf("got %+v, want %+v", u.Quotas[i], c.want[i])
				}
			}
			if len(u.Threads) != 2 || u.Threads[0] != (ThreadUsage{7, "redis-server", 100, 20}) ||
				u.Threads[1] != (ThreadUsage{9, "io_thd_1", 5, 6}) || len(u.CPUs) != 3 {
				t.Errorf("got %+v", u)
			}
			if err := os.Remove(filepath.Join(dir, "proc/7/task/7/schedstat")); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Read(); !errors.Is(err, ErrGone) {
				t.Errorf("of a process that has ended: %v", err)
			}
		})
	}
}
