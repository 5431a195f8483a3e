package host

import (
	"path"
	"strconv"
	"strings"

	"slowpath/internal/recording/series"
	"slowpath/internal/source/hostfs"
)

// followCgroup notices that the server was moved to another cgroup, or that a quota was set or removed, and gives the
// reader of the main thread new files.
func (w *watch) followCgroup() {
	raw, ok := w.read(w.proc("cgroup"))
	if !ok {
		return
	}
	moved := string(raw) != w.groups.raw
	if moved {
		now, err := cgroupsOf(w.FS, raw)
		if err != nil {
			return
		}
		w.reads.Add(1)
		w.groups = now
	}
	limits := cpuLimits(w.FS, w.groups.cpu)
	if !moved && sameLimits(limits, w.thread.levels.Load().limits) {
		return
	}
	w.thread.setLevels(openLevels(w.FS, w.groups.cpu))
	w.cgroupSnapshot()
}

func sameLimits(a, b []cpuLimit) bool {
	if len(a) != len(b) && len(b) < maxLevels {
		return false
	}
	for i := range b {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// cgroupPlace is the snapshot "cgroup" of the server.
type cgroupPlace struct {
	Version    int        `json:"version"`
	CPUPath    string     `json:"cpu_path"`
	Levels     []cpuLimit `json:"levels"` // those with a quota, its own first
	MemoryPath string     `json:"memory_path"`
	Pod        string     `json:"pod,omitempty"`       // Kubernetes pod uid
	Container  string     `json:"container,omitempty"` // container id

	PodNamespace  string `json:"pod_namespace,omitempty"`
	PodName       string `json:"pod_name,omitempty"`
	ContainerName string `json:"container_name,omitempty"`
	Deployment    string `json:"deployment,omitempty"`

	Unit   string `json:"unit,omitempty"`   // systemd unit
	Kernel string `json:"kernel,omitempty"` // release of the kernel: some throttle below the quota
}

func (w *watch) cgroupSnapshot() {
	p := cgroupPlace{
		Version: w.groups.cpu.version, CPUPath: w.groups.cpu.path, MemoryPath: w.groups.memory.path,
		Levels: cpuLimits(w.FS, w.groups.cpu), Kernel: readLine(w.FS, "/proc/sys/kernel/osrelease"),
	}
	p.Pod, p.Container, p.Unit = hostfs.OwnerOf(w.groups.cpu.path)
	n := hostfs.PodNamesOf(w.FS, p.Pod, p.Container)
	p.PodNamespace, p.PodName, p.ContainerName, p.Deployment = n.Namespace, n.Pod, n.Container, n.Deployment
	if p.Unit == "" {
		_, _, p.Unit = hostfs.OwnerOf(cgroupPaths([]byte(w.groups.raw))["name=systemd"])
	}
	w.snapshot(w.Node, "cgroup", p)
}

// cgroupCPU samples the quota and the throttling of every level of a CPU cgroup, and for the server's how much CPU time
// the level used. That is sampled last: what the level used until it was throttled is in it.
func (w *watch) cgroupCPU(c cgroup, ofServer bool) {
	for _, p := range c.levels() {
		if l, ok := readCPULimit(w.FS, c, p); ok {
			w.sampleOf(series.CgroupQuota, p, float64(l.QuotaUs))
			w.sampleOf(series.CgroupPeriod, p, float64(l.PeriodUs))
			w.sampleOf(series.CgroupBurst, p, float64(l.BurstUs))
		}
		b, ok := w.read(path.Join(c.mount, p, "cpu.stat"))
		if !ok {
			continue
		}
		if s, ok := parseCPUStat(b); ok {
			w.sampleOf(series.CgroupPeriods, p, float64(s.periods))
			w.sampleOf(series.CgroupThrottled, p, float64(s.throttled))
			w.sampleOf(series.CgroupThrottledNs, p, float64(s.throttledNs))
			if used, ok := w.cgroupUsage(c, p, s); ok && ofServer {
				w.sampleOf(series.CgroupUsage, p, float64(used))
			}
		}
	}
}

// cgroupUsage is the CPU time that a level of the server's CPU cgroup has used, in nanoseconds. With version 1 another
// controller counts it, which most hosts mount together with this one; where not, the cgroup must have the same path.
func (w *watch) cgroupUsage(c cgroup, p string, s cpuStat) (ns int64, ok bool) {
	if c.version == 2 {
		return s.usageNs, s.usageNs > 0
	}
	acct := w.groups.cpuacct
	if !acct.known() || acct.path != c.path || p == "/" {
		return 0, false
	}
	ns, err := strconv.ParseInt(readLine(w.FS, path.Join(acct.mount, p, "cpuacct.usage")), 10, 64)
	return ns, err == nil
}

// cgroupMemory samples use, limit and how often the limit was reached, at every level.
func (w *watch) cgroupMemory() {
	c := w.groups.memory
	for _, p := range c.levels() {
		if p == "/" {
			break // the root has no limit
		}
		dir := path.Join(c.mount, p)
		if c.version == 1 {
			w.sampleFile(series.CgroupMemory, p, dir+"/memory.usage_in_bytes")
			w.sampleFile(series.CgroupMemoryLimit, p, dir+"/memory.limit_in_bytes")
			w.sampleFile(series.CgroupMemoryFails, p, dir+"/memory.failcnt")
			w.sampleKeys(series.CgroupMemoryControl, p, dir+"/memory.oom_control", "oom_kill")
			continue
		}
		w.sampleFile(series.CgroupMemory, p, dir+"/memory.current")
		w.sampleFile(series.CgroupMemoryLimit, p, dir+"/memory.max")
		w.sampleFile(series.CgroupMemoryHigh, p, dir+"/memory.high")
		w.sampleKeys(series.CgroupMemoryEvents, p, dir+"/memory.events", "high", "max", "oom", "oom_kill")
	}
}

// noLimit is what cgroup v1 gives for "none": the largest multiple of the page size.
const noLimit = 1 << 62

// sampleFile samples a file with one number; no limit is -1.
func (w *watch) sampleFile(of series.Name, which, file string) {
	b, ok := w.read(file)
	if !ok {
		return
	}
	text := strings.TrimSpace(string(b))
	v, err := strconv.ParseFloat(text, 64)
	if text == "max" || (err == nil && v >= noLimit) {
		v, err = -1, nil
	}
	if err == nil {
		w.sampleOf(of, which, v)
	}
}

// sampleKeys samples the wanted lines "key value" of a file.
func (w *watch) sampleKeys(of func(key string) series.Name, which, file string, want ...string) {
	b, ok := w.read(file)
	if !ok {
		return
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		for _, key := range want {
			if len(f) == 2 && f[0] == key {
				w.sampleText(of(key), which, f[1])
			}
		}
	}
}

// cgroupIO samples the I/O limits that are set: of several devices the smallest.
func (w *watch) cgroupIO() {
	c := w.groups.blkio
	for _, p := range c.levels() {
		if p == "/" && c.version == 2 {
			break
		}
		dir, limits := path.Join(c.mount, p), map[string]float64{}
		if c.version == 2 {
			b, _ := w.read(dir + "/io.max")
			parseIOMax(b, limits)
		} else {
			for _, f := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
				b, _ := w.read(dir + "/blkio.throttle." + f + "_device")
				parseThrottleDevice(b, f, limits)
			}
		}
		for name, v := range limits {
			w.sampleOf(series.CgroupIOLimit(name), p, v)
		}
	}
}

// cgroupPressure samples the stall times of the v2 cgroup.
func (w *watch) cgroupPressure() {
	c := w.groups.unified
	if !c.known() || c.path == "/" {
		return
	}
	for _, resource := range []string{"cpu", "memory", "io"} {
		if b, ok := w.read(path.Join(c.dir(), resource+".pressure")); ok {
			w.pressure(series.CgroupPressure, c.path, resource, b)
		}
	}
}
