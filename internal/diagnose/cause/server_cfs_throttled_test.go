package cause_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// level is a cgroup with a quota of 20 ms per 100 ms, in each second of an hostCase.
type level struct {
	path      string
	quotaUs   float64
	used      [8]float64 // ms of CPU time
	throttled [8]float64 // periods
}

// everySecond is a level that does the same in each second.
func everySecond(path string, usedMs, throttled float64) level {
	l := level{path: path, quotaUs: 20000}
	for i := range l.used {
		l.used[i], l.throttled[i] = usedMs, throttled
	}
	return l
}

// under puts the server into cgroups, its own first.
func (r hostCase) under(version int, kernel string, levels ...level) hostCase {
	type place struct {
		Path   string `json:"path"`
		Quota  int    `json:"quota_us"`
		Period int    `json:"period_us"`
	}
	var places []place
	for _, l := range levels {
		places = append(places, place{l.path, int(l.quotaUs), 100000})
		r.level(l)
	}
	list, _ := json.Marshal(places)
	r.sample(recording.SubjectMachine, "cpu.count", 4, 4)
	r.Snapshot(recording.Snapshot{
		Source: recording.SourceHost, Subject: hostNode, Name: "cgroup",
		Body: fmt.Sprintf(`{"version":%d,"cpu_path":"%s","levels":%s,"kernel":"%s"%s}`, version, levels[0].path, list,
			kernel, ownerOf(levels[0].path)),
	})
	return r
}

func ownerOf(path string) string {
	var owner string
	if strings.Contains(path, "pod1234") {
		owner = `,"pod":"1234-5"`
	}
	if strings.Contains(path, "podcafe") { // of a Deployment
		owner = `,"pod":"cafe-5","pod_namespace":"shop","pod_name":"cart-789b6cdf47-x2k9w","container_name":"app",` +
			`"deployment":"cart"`
	}
	if strings.Contains(path, "docker") {
		owner += `,"container":"0123456789abcdef"`
	}
	return owner
}

func (r hostCase) level(l level) {
	subject := recording.CgroupPrefix + l.path
	add := func(at int64, name string, value float64) {
		r.Sample(recording.Sample{TimeNs: at, Source: recording.SourceHost, Subject: subject, Name: name, Value: value})
	}
	var used, throttled float64
	for i := range len(l.used) + 1 {
		at := int64(i) * 1e9
		add(at, "cpu.quota_us", l.quotaUs)
		add(at, "cpu.period_us", 100000)
		add(at, "cpu.nr_periods", float64(10*i))
		add(at, "cpu.nr_throttled", throttled)
		add(at, "cpu.throttled_ns", throttled*60e6)
		if used > 0 || l.used[0] > 0 {
			add(at, "cpu.usage_ns", 5e9+used*1e6)
		}
		if i < len(l.used) {
			used, throttled = used+l.used[i], throttled+l.throttled[i]
		}
	}
}

// TestThrottledKind: use against quota tells a quota that is too small from bursts that reach it, and from a kernel
// that throttles below it.
func TestThrottledKind(t *testing.T) {
	const below = "it was throttled below the quota"
	late := everySecond("/redis", 40, 0)
	late.throttled[6], late.used[6] = 10, 200
	changed := everySecond("/redis", 40, 2)
	fork := everySecond("/redis", 1, 6)
	big := func(l level) level {
		l.quotaUs = 100000
		return l
	}
	for name, c := range map[string]struct {
		rec               hostCase
		want, fix, notFix string
		unknown           bool
	}{
		"sustained": {
			newHostCase(true).under(1, "6.1.0", everySecond("/redis", 200, 10)),
			"the quota is too small: in the seconds in which it was throttled, it used 100 % of the quota, and " +
				"was throttled in 100 % of the periods",
			"do not help", "cfs_burst_us", false,
		},
		"sustained, with one period unused now and then": {
			newHostCase(true).under(1, "6.1.0", everySecond("/redis", 185, 9)), "the quota is too small", "", "", false,
		},
		"sustained for one second of eight": {
			newHostCase(true).under(1, "6.1.0", late), "the quota is too small", "", "", false,
		},
		"sustained, by callers that are late": {
			newHostCase(true).under(1, "6.1.0", everySecond("/redis", 170, 8)),
			"it used 85 % of the quota, and was throttled in 80 % of the periods", "allow bursts", "do not help", false,
		},
		"neither": {
			newHostCase(true).under(1, "6.1.0", everySecond("/redis", 160, 4)),
			"in the seconds in which it was throttled, it used 80 % of the quota, and was throttled in 40 %",
			"allow bursts", "do not help", true,
		},
		"bursts": {
			newHostCase(true).under(2, "6.1.0", everySecond("/redis", 50, 2)),
			"short bursts reach the quota: in the seconds in which it was throttled, it used 25 % of it; it stood " +
				"still while 150 ms of CPU time per second were left unused",
			"echo 20000 > /sys/fs/cgroup/redis/cpu.max.burst", "do not help", false,
		},
		"bursts, cgroup v1": {
			newHostCase(true).under(1, "5.15.0", everySecond("/redis", 50, 2)), "short bursts",
			"echo 20000 > /sys/fs/cgroup/cpu/redis/cpu.cfs_burst_us", "", false,
		},
		"bursts before 5.14": {
			newHostCase(true).under(2, "5.10.0-32", everySecond("/redis", 50, 2)), "short bursts",
			"Upgrade to Linux 5.14", "echo 20000", false,
		},
		// 9 of 10 periods throttled with 100 ms each, and 30 % of a core used: 7.2 s were granted, 2.4 s used
		"the fault before 4.18": {
			newHostCase(true).under(1, "4.9.0-13-amd64", big(everySecond("/redis", 300, 9))),
			below + ": it used 2.4 s, and the 72 throttled periods alone allow 7.2 s. Linux 4.9.0-13-amd64: " +
				"before 4.18",
			"Upgrade the kernel", "", false,
		},
		"the fault before 5.4": {
			newHostCase(true).under(1, "4.19.0-6", big(everySecond("/redis", 300, 9))),
			below + ": it used 2.4 s, and the 72 throttled periods alone allow 7.2 s. Linux 4.19.0-6: before 5.4",
			"de53fd7aedb1", "", false,
		},
		"slices": {
			newHostCase(true).under(2, "6.1.0", big(everySecond("/redis", 300, 9))).sample(recording.SubjectMachine,
				"cpu.count", 64, 64),
			"has none of the known faults", "sched_cfs_bandwidth_slice_us", "Upgrade", false,
		},
		// 6 periods of each second were stolen by the hypervisor: their quota was not given
		"a virtual machine that stood still": {
			newHostCase(true).under(1, "4.9.0", big(everySecond("/redis", 300, 9))).sample(recording.SubjectMachine,
				"cpu.steal_ns", 0, 8*0.6e9), "its quota is 1.00 cores", "allow bursts", "Upgrade", true,
		},
		"slowpath did not run, either": {
			newHostCase(true).under(1, "4.9.0", big(everySecond("/redis", 300, 9))).sample(recording.SubjectSelf,
				"host.late_ns", 0, 8*0.6e9), "its quota is 1.00 cores", "allow bursts", "Upgrade", true,
		},
		"more than slices on a kernel without the faults": {
			newHostCase(true).under(1, "6.1.0", big(everySecond("/redis", 300, 9))), "its quota is 1.00 cores",
			"allow bursts", "slice_us", true,
		},
		// 960 ms granted, 8 used: as much as a thread that was long in the kernel before the watch may have overdrawn
		"maybe an overdraft from before the watch": {
			newHostCase(true).under(1, "4.9.0", fork), "its quota is 0.20 cores", "allow bursts", "Upgrade", true,
		},
		"no use recorded": {
			newHostCase(true).under(1, "4.9.0", everySecond("/redis", 0, 9)), "its quota is 0.20 cores", "allow bursts",
			"Upgrade", true,
		},
		"the quota was changed": {
			newHostCase(true).under(1, "6.1.0", changed).sample(recording.CgroupPrefix+"/redis", "cpu.quota_us", 1e5,
				2e4),
			"its quota is 0.20 cores", "allow bursts", "do not help", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.rec.threads(1.6, 0.1).throttled(t)
			got := texts(f.Evidence)
			if !strings.Contains(got, c.want) {
				t.Errorf("evidence:\n%s\nwant %q", got, c.want)
			}
			if strings.Contains(got, below) != strings.Contains(texts(f.Against), "a virtual machine stands still") {
				t.Errorf("against: %s", texts(f.Against))
			}
			title := "The server's cgroup has too little CPU quota"
			switch {
			case strings.Contains(got, below):
				title = "The kernel stops the server's cgroup below its CPU quota"
			case strings.Contains(got, "short bursts"):
				title = "Short bursts use up the CPU quota of the server's cgroup"
			}
			if !strings.HasPrefix(f.Title, title) {
				t.Errorf("title %q, want %q", f.Title, title)
			}
			kinds := 0
			for _, kind := range []string{below, "short bursts", "too small"} {
				kinds += strings.Count(got, kind)
			}
			if kinds > 1 || kinds == 1 && c.unknown || kinds == 0 && !c.unknown {
				t.Errorf("%d kinds in\n%s", kinds, got)
			}
			if fix := strings.Join(f.Fix, "\n"); !strings.Contains(fix, c.fix) ||
				c.notFix != "" && strings.Contains(fix, c.notFix) {
				t.Errorf("fix:\n%s\nwant %q, not %q", fix, c.fix, c.notFix)
			}
		})
	}
}

// TestThrottledLevel: the fix is for the level whose quota throttled, and says who else used it.
func TestThrottledLevel(t *testing.T) {
	const pod, container = "/kubepods.slice/kubepods-pod1234_5.slice", "/cri-containerd-1.scope"
	unlimited := everySecond(pod, 60, 0)
	unlimited.quotaUs = -1
	for name, c := range map[string]struct {
		levels        []level
		evidence, fix string
	}{
		"the container": {
			[]level{everySecond(pod+container, 200, 10), everySecond(pod, 200, 0)},
			"its quota is 0.20", "-c redis",
		},
		"the pod": {
			[]level{everySecond(pod+container, 50, 0), everySecond(pod, 200, 10)},
			"other processes below " + pod + " used 75 % of its CPU time", "whole pod 1234-5",
		},
		"a pod with names": {
			[]level{everySecond("/kubepods.slice/podcafe/x", 200, 10)},
			"its quota is 0.20",
			"the workload of pod shop/cart-789b6cdf47-x2k9w, or set it to at least 3\n" +
				"kubectl set resources -n shop deployment/cart -c app --limits=cpu=0",
		},
		"both, the pod longer": {
			[]level{everySecond(pod+container, 50, 1), everySecond(pod, 200, 9)},
			"above the server's own cgroup",
			"whole pod",
		},
		"a slice above the pods": {
			[]level{everySecond(pod+container, 50, 0), unlimited, everySecond("/kubepods.slice", 200, 10)},
			"used 70 %",
			"systemctl set-property kubepods.slice CPUQuota=",
		},
		"a service": {
			[]level{everySecond("/system.slice/redis.service", 200, 10)},
			"its quota is 0.20",
			"systemctl set-property redis.service CPUQuota=",
		},
		"the slice of a service": {
			[]level{everySecond("/db.slice/redis.service", 200, 0), everySecond("/db.slice", 200, 10)},
			"the quota of /db.slice", "systemctl set-property db.slice CPUQuota=",
		},
		"docker": {
			[]level{everySecond("/system.slice/docker-0123456789abcdef.scope", 200, 10)}, "", "docker update --cpus=",
		},
		"a bare group": {
			[]level{everySecond("/a b", 200, 10)}, "", "echo max > '/sys/fs/cgroup/a b/cpu.max'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHostCase(true).threads(1.6, 0.1).under(2, "6.1.0", c.levels...).throttled(t)
			if got := texts(f.Evidence); !strings.Contains(got, c.evidence) {
				t.Errorf("evidence:\n%s\nwant %q", got, c.evidence)
			}
			if above := strings.HasPrefix(f.Title, "A cgroup above"); above != (c.levels[0].throttled[0] < 2) {
				t.Errorf("title %q", f.Title)
			}
			if fix := strings.Join(f.Fix, "\n"); !strings.Contains(fix, c.fix) {
				t.Errorf("fix %q, want %q", fix, c.fix)
			}
		})
	}
}

// throttled is the finding in a recording whose main thread was throttled in each stall.
func (r hostCase) throttled(t *testing.T) cause.Finding {
	t.Helper()
	r.stalled(recording.KindThrottled, recording.ThreadDetail{})
	r.Index()
	d := verdict.Diagnose(r.Recording, "test")
	if len(d.Findings) == 0 || d.Findings[0].Cause != "server-cfs-throttled" {
		t.Fatalf("%s %+v", d.Summary, d.Findings)
	}
	return d.Findings[0]
}
