package host

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const statLine = "4242 (redis (x) y) R 1 4242 4242 0 -1 4194304 962 0 7 0 31 45 0 0 20 0 5 0 123456 70000000 3000 " +
	"18446744073709551615 1 2 3 4 5 0 0 3674116 1088 0 0 0 17 1 0 0 9 0 0 0 0 0 0 0 0 0 0\n"

func TestParseStat(t *testing.T) {
	s, ok := parseStat([]byte(statLine))
	want := taskStat{
		state: 'R', ppid: 1, minflt: 962, majflt: 7, utime: 31, stime: 45, threads: 5, start: 123456,
		rssPages: 3000, cpu: 1,
		blkioDelay: 9, commBegin: 6, commEnd: 17,
	}
	if !ok || s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for _, bad := range []string{"", "1 (x", "1 (x)", "1 (x) R", "1 (x) R 1 2 3", "x) (1 R 1 2 3"} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("took %q", bad)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	if s, ok := parseSchedstat([]byte("174078033 629385945 114\n")); !ok || s != (schedstat{
		174078033, 629385945,
		114,
	}) {
		t.Errorf("got %+v %v", s, ok)
	}
	for _, bad := range []string{"", "1", "1 2", "a b c", "99999999999999999999 1 1"} {
		if s, ok := parseSchedstat([]byte(bad)); ok || s != (schedstat{}) {
			t.Errorf("took %q", bad)
		}
	}
}

func TestParseCPUStat(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       cpuStat
		ok         bool
	}{
		{
			"v1", "nr_periods 13\nnr_throttled 12\nthrottled_time 1014870034\nnr_bursts 2\nburst_time 7\n",
			cpuStat{periods: 13, throttled: 12, throttledNs: 1014870034, bursts: 2, burstNs: 7},
			true,
		},
		{
			"v2", "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 13\nnr_throttled 12\nthrottled_usec " +
				"1014870\nnr_bursts 0\nburst_usec 9\n",
			cpuStat{periods: 13, throttled: 12, throttledNs: 1014870000, burstNs: 9000, usageNs: 5000},
			true,
		},
		{"v2 without the cpu controller", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n", cpuStat{usageNs: 5000}, false},
		{"empty", "", cpuStat{}, false},
	} {
		if s, ok := parseCPUStat([]byte(c.text)); s != c.want || ok != c.ok {
			t.Errorf("%s: got %+v %v, want %+v", c.name, s, ok, c.want)
		}
	}
}

func TestNetCounters(t *testing.T) {
	got := map[string]int64{}
	text := "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 172 173\nTcp: MaxConn RetransSegs\nTcp: " +
		"-1 5\nIp: A\nIp: 1 2\n"
	eachNetCounter([]byte(text), func(group, name string, v int64) { got[group+" "+name] = v })
	if got["TcpExt ListenOverflows"] != 172 || got["Tcp RetransSegs"] != 5 || got["Tcp MaxConn"] != -1 ||
		len(got) != 5 {
		t.Errorf("got %v", got)
	}
}

func TestParseCPUTimes(t *testing.T) {
	got := map[int]cpuTimes{}
	parseCPUTimes([]byte("cpu  10 1 20 500 3 2 4 7 0 0\ncpu1 5 0 10 250 1 1 2 3 0 0\nintr 5\ncpu2 9"),
		func(cpu int, c cpuTimes) { got[cpu] = c })
	if got[-1] != (cpuTimes{busy: 37 * clockTickNs, softirq: 4 * clockTickNs, steal: 7 * clockTickNs}) ||
		got[1].steal != 3*clockTickNs ||
		len(got) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestCPUSet(t *testing.T) {
	s := parseCPUSet("0-2,5,x,9-")
	if len(s) != 4 || !s[5] || s[9] {
		t.Errorf("got %v", s)
	}
}

func TestSyscallOf(t *testing.T) {
	for line, want := range map[string]string{
		"running\n": "", "-1 0x7ff 0x55": "page-fault",
		"999999 0x1": "syscall-999999", "": "",
	} {
		if got, _ := syscallOf([]byte(line)); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string][4]uint64{
		"1 0x7 0x55 0x1 0x7ffd 0x7f\n": {7, 0x55, 1, 0x7ffd}, "1 0xffffffffffffffff 0x1": {1<<64 - 1, 1},
		"1 0x1ffffffffffffffff 0x2": {0, 2}, "1": {}, "1 7": {}, "-1 0x7": {}, "1 0x7\n": {7},
	} {
		if _, got := syscallOf([]byte(line)); got != want {
			t.Errorf("%q: arguments %x, want %x", line, got, want)
		}
	}
}

func TestProcSocket(t *testing.T) {
	for _, c := range []struct{ line, local, remote string }{
		{
			"   0: 0100007F:18EB 00000000:0000 0A 00000000:00000005 00:00000000 00000000     0        0 12345 1 0",
			"127.0.0.1:6379", "0.0.0.0:0",
		},
		{"   1: 0000000000000000FFFF00000100007F:18EB 0000000000000000FFFF00000100007F:C001 01 00000000:00000000 " +
			"00:00000000 00000000 0 0 9 1", "127.0.0.1:6379", "127.0.0.1:49153"},
	} {
		var s Socket
		if !parseProcSocket([]byte(c.line), &s) || s.Local.String() != c.local || s.Remote.String() != c.remote {
			t.Errorf("got %+v of %q", s, c.line)
		}
	}
	var s Socket
	if parseProcSocket([]byte("  sl  local_address rem_address   st tx_queue"), &s) {
		t.Error("took the headline")
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("174078033 629385945 114\n"))
	f.Add([]byte("nr_periods 13\nnr_throttled 12\nthrottled_usec 1014870\n"))
	f.Add([]byte("TcpExt: A B\nTcpExt: 1 2\n"))
	f.Add([]byte("cpu  10 1 20 500 3 2 4 7 0 0\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\n"))
	f.Add([]byte("25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"))
	f.Add([]byte("4:cpu,cpuacct:/a\n0::/b\n"))
	f.Add([]byte("8:0 rbps=max wbps=1048576\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseSchedstat(b); ok && (s.runNs < 0 || s.delayNs < 0 || s.arrivals < 0) {
			t.Errorf("negative: %+v", s)
		}
		if s, ok := parseStat(b); ok && (s.commBegin > s.commEnd || s.commEnd > len(b)) {
			t.Errorf("command outside of the line: %+v", s)
		}
		if s, _ := parseCPUStat(b); s.throttledNs < 0 || s.throttled < 0 || s.usageNs < 0 {
			t.Errorf("negative: %+v", s)
		}
		eachNetCounter(b, func(string, string, int64) {})
		parseCPUTimes(b, func(_ int, c cpuTimes) {
			if c.softirq < 0 || c.steal < 0 {
				t.Errorf("negative: %+v", c)
			}
		})
		pressureTotals(b, func(string, int64) {})
		parseIOMax(b, map[string]float64{})
		for _, name := range strings.Fields(string(b)) {
			if unescaped := unescapeMount(name); len(unescaped) > len(name) {
				t.Errorf("%q unescaped is %q", name, unescaped)
			}
		}
		for _, p := range cgroupPaths(b) {
			if below, ok := belowRoot(p, "/"); ok && strings.HasPrefix(below+"/", "/../") {
				t.Errorf("%q leaves the mount", p)
			}
		}
		parseCPUSet(string(b))
		syscallOf(b)
		var s Socket
		parseProcSocket(b, &s)
	})
}

// TestThisProcess reads the real files of this process with the parsers.
func TestThisProcess(t *testing.T) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getpid()))
	if err != nil {
		t.Skip("needs Linux")
	}
	if s, ok := parseStat(b); !ok || s.ppid != os.Getppid() || s.threads < 1 {
		t.Errorf("got %+v %v", s, ok)
	}
}
