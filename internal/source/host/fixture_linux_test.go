package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

const (
	podPath  = "/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice"
	ctrName  = "cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope"
	v2Mounts = "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	v1Mounts = "31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n32 20 0:28 / " +
		"/sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"33 20 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n34 20 0:30 / /sys/fs/cgroup/blkio rw - " +
		"cgroup cgroup rw,blkio\n"
)

// tree writes a fixture: names of files below a root, and their text.
func tree(t *testing.T, files map[string]string) Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Root{Root: hostfs.Root{Dir: dir}}
}

// server is what /proc has of a server with PID 77.
func server(cgroup string) map[string]string {
	return map[string]string{
		"/proc/77/cgroup": cgroup, "/proc/77/stat": statLine, "/proc/77/task/77/stat": statLine,
		"/proc/77/task/77/schedstat": "1000 2000 3\n",
		"/proc/77/status": "Name:\tredis-server\nPPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t77\t1\nVmSwap:\t     " +
			"12 kB\n",
		"/proc/77/task/77/status": "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n" +
			"Cpus_allowed_list:\t0-1\n",
		"/proc/77/cmdline":     "redis-server *:6379\x00",
		"/proc/77/net/netstat": "TcpExt: ListenOverflows\nTcpExt: 9\n",
		"/proc/77/net/snmp":    "Tcp: RetransSegs\nTcp: 4\n",
		"/proc/77/net/tcp": "  sl\n   0: 00000000:18EB 00000000:0000 0A 00000000:00000005 00:00000000 00000000     0 " +
			"       0 12345 1 0\n" +
			"   1: 0100007F:18EB 0100007F:C001 01 00000010:00000020 00:00000000 00000002     0        0 12346 1 0\n",
		"/proc/stat": "cpu  10 1 20 500 3 2 4 7 0 0\ncpu0 5 0 10 250 1 1 2 3 0 0\ncpu1 5 0 10 250 1 1 2 3 0 0\n",
	}
}

// watchTree watches a fixture for 30 ms of a bubble's time.
func watchTree(t *testing.T, root Root) *memory {
	t.Helper()
	sink := &memory{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(clock.WithTimers(t.Context()), 30*time.Millisecond)
		defer cancel()
		o := Options{FS: root, Sink: sink, Node: node, Process: Process{PID: 77, Port: 6379}}
		if err := Watch(ctx, o); err != nil {
			t.Fatal(err)
		}
	})
	return sink
}

func (m *memory) want(t *testing.T, subject, name string, want float64) {
	t.Helper()
	if got, ok := m.value(subject, name); !ok || got != want {
		t.Errorf("%s %s: got %v (there: %v), want %v", subject, name, got, ok, want)
	}
}

func (m *memory) place(t *testing.T) (p cgroupPlace) {
	t.Helper()
	for _, s := range m.snapshots {
		if s.Name == "cgroup" {
			if err := json.Unmarshal([]byte(s.Body), &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func TestWatchCgroupV2(t *testing.T) {
	files := server("0::" + podPath + "/" + ctrName + "\n")
	pod := "/sys/fs/cgroup" + podPath
	ctr := pod + "/" + ctrName
	for name, text := range map[string]string{
		"/proc/self/mountinfo": v2Mounts,
		ctr + "/cpu.max":       "20000 100000\n", ctr + "/cpu.max.burst": "5000\n", ctr + "/cpu.stat": "usage_usec " +
			"1\nnr_periods 13\nnr_throttled 12\nthrottled_usec 1014870\n",
		pod + "/cpu.max": "50000 100000\n", pod + "/cpu.stat": "nr_periods 3\nnr_throttled 0\nthrottled_usec 0\n",
		"/sys/fs/cgroup/kubepods.slice/cpu.max": "max 100000\n",
		ctr + "/memory.current":                 "1000\n", ctr + "/memory.max": "max\n", ctr + "/memory.high": "4096\n",
		ctr + "/memory.events": "low 0\nhigh 5\nmax 6\noom 7\noom_kill 8\n",
		ctr + "/io.max": "8:0 rbps=max wbps=1048576 riops=max wiops=100\n8:16 rbps=5 wbps=max riops=max " +
			"wiops=50\n",
		ctr + "/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=42\nfull avg10=0.00 avg60=0.00 " +
			"avg300=0.00 total=41\n",
		ctr + "/cgroup.events": "populated 1\nfrozen 0\n",
	} {
		files[name] = text
	}
	sink := watchTree(t, tree(t, files))
	subject := "cgroup:" + podPath + "/" + ctrName
	sink.want(t, subject, "cpu.quota_us", 20000)
	sink.want(t, subject, "cpu.burst_us", 5000)
	sink.want(t, subject, "cpu.throttled_ns", 1014870000)
	sink.want(t, subject, "cpu.usage_ns", 1000)
	sink.want(t, "cgroup:"+podPath, "cpu.quota_us", 50000)
	sink.want(t, "cgroup:/kubepods.slice", "cpu.quota_us", -1)
	sink.want(t, subject, "memory.limit_bytes", -1)
	sink.want(t, subject, "memory.high_bytes", 4096)
	sink.want(t, subject, "memory.events.max", 6)
	sink.want(t, subject, "io.write_bps_limit", 1048576)
	sink.want(t, subject, "io.write_iops_limit", 50)
	sink.want(t, subject, "psi.cpu.some_us", 42)
	sink.want(t, node, "main.delay_ns", 2000)
	sink.want(t, node, "main.nonvoluntary_switches", 6)
	sink.want(t, node, "process.swap_bytes", 12288)
	sink.want(t, node, "net.ListenOverflows", 9)
	sink.want(t, node, "net.RetransSegs", 4)
	sink.want(t, node, "listen.queue", 5)
	sink.want(t, node, "sock.established", 1)
	sink.want(t, node, "sock.recvq_max_bytes", 32)
	sink.want(t, node, "sock.retransmitting", 1)
	sink.want(t, "machine", "cpu.count", 2)
	sink.want(t, "machine", "cpu.1.steal_ns", 3*clockTickNs)
	if _, known := sink.value(recording.SubjectSelf, "host.late_ns"); !known {
		t.Error("it is not said for how long slowpath did not run")
	}
	p := sink.place(t)
	if p.Version != 2 || len(p.Levels) != 2 || p.Levels[0].QuotaUs != 20000 || p.Levels[1].Path != podPath ||
		p.Pod == "" || p.Container == "" {
		t.Errorf("place %+v", p)
	}
	if len(sink.kind(recording.KindBlindSpot)) == 0 {
		t.Error("no blind spot for missing TCP_INFO")
	}
}

func TestWatchCgroupV1(t *testing.T) {
	files := server("4:memory:/redis\n3:freezer:/\n2:cpu,cpuacct:/system.slice/redis.service\n" +
		"1:name=systemd:/system.slice/redis.service\n0::/system.slice/redis.service\n")
	cpu := "/sys/fs/cgroup/cpu,cpuacct/system.slice"
	for name, text := range map[string]string{
		"/proc/self/mountinfo":                  v1Mounts,
		cpu + "/redis.service/cpu.cfs_quota_us": "-1\n", cpu + "/redis.service/cpu.cfs_period_us": "100000\n",
		cpu + "/cpu.cfs_quota_us": "30000\n", cpu + "/cpu.cfs_period_us": "100000\n", cpu + "/cpu.stat": "nr_periods " +
			"13\nnr_throttled 12\nthrottled_time 77\n",
		cpu + "/cpuacct.usage":                              "88\n",
		"/proc/sys/kernel/osrelease":                        "4.9.0-13-amd64\n",
		"/sys/fs/cgroup/memory/redis/memory.usage_in_bytes": "5\n",
		"/sys/fs/cgroup/memory/redis/memory.limit_in_bytes": "9223372036854771712\n",
		"/sys/fs/cgroup/memory/redis/memory.failcnt":        "3\n",
		"/sys/fs/cgroup/memory/redis/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
	} {
		files[name] = text
	}
	sink := watchTree(t, tree(t, files))
	sink.want(t, "cgroup:/system.slice", "cpu.quota_us", 30000)
	sink.want(t, "cgroup:/system.slice", "cpu.throttled_ns", 77)
	sink.want(t, "cgroup:/system.slice", "cpu.usage_ns", 88)
	sink.want(t, "cgroup:/redis", "memory.limit_bytes", -1)
	sink.want(t, "cgroup:/redis", "memory.failcnt", 3)
	sink.want(t, "cgroup:/redis", "memory.oom_kill", 1)
	p := sink.place(t)
	if p.Version != 1 || len(p.Levels) != 1 || p.Levels[0].Path != "/system.slice" || p.Unit != "redis.service" ||
		p.MemoryPath != "/redis" || p.Kernel != "4.9.0-13-amd64" {
		t.Errorf("place %+v", p)
	}
}

// TestCgroupOutsideTheNamespace: seen from a container, the server's path begins with "/.."; the mount does not show
// it.
func TestCgroupOutsideTheNamespace(t *testing.T) {
	for _, c := range []struct {
		path, mounts, want string
		known              bool
	}{
		{"0::/../other", v2Mounts, "", false},
		{"0::/", v2Mounts, "/", true},
		{"0::/docker/abc/sub", "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "/sub", true},
		{"0::/docker/abc", "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "/", true},
		{"0::/docker/abcd", "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "", false},
		{"0::/a b", "30 20 0:26 / /mnt/c\\040g ro - cgroup2 cgroup ro\n", "/a b", true},
	} {
		files := server(c.path + "\n")
		files["/proc/self/mountinfo"] = c.mounts
		g, err := resolveCgroups(tree(t, files), 77)
		if err != nil || g.cpu.path != c.want || g.cpu.known() != c.known {
			t.Errorf("%s: got %+v, %v", c.path, g.cpu, err)
		}
	}
}

func TestWatchOfNoProcess(t *testing.T) {
	err := Watch(context.Background(), Options{
		FS:   tree(t, map[string]string{"/proc/self/mountinfo": v2Mounts}),
		Sink: &memory{}, Process: Process{PID: 78},
	})
	if err == nil {
		t.Error("no error")
	}
}

func TestCgroupLevels(t *testing.T) {
	c := cgroup{version: 2, mount: "/m", path: "/a/b"}
	if got := c.levels(); !slices.Equal(got, []string{"/a/b", "/a", "/"}) {
		t.Errorf("got %v", got)
	}
}
