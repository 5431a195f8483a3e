package host

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// cgroup is the place of a process in one cgroup hierarchy.
type cgroup struct {
	version int    // 1 or 2
	mount   string // where the hierarchy is mounted: /sys/fs/cgroup/cpu
	path    string // below the mount: "/kubepods/pod1/redis"
}

func (c cgroup) dir() string { return path.Join(c.mount, c.path) }

// known reports whether the hierarchy is mounted here and the cgroup is below the mount.
func (c cgroup) known() bool { return c.mount != "" }

// levels are the paths from the own cgroup up to the root of the mount.
func (c cgroup) levels() []string {
	var list []string
	for p := c.path; c.known(); p = path.Dir(p) {
		list = append(list, p)
		if p == "/" || p == "." {
			break
		}
	}
	return list
}

// cgroups are the places of a process. A controller that is nowhere mounted is the zero cgroup.
type cgroups struct {
	cpu, memory, freezer, blkio cgroup
	cpuacct                     cgroup // of v1: counts the CPU time of a cgroup, which v2 does in cpu.stat
	unified                     cgroup // v2 hierarchy, even where it has no controllers
	raw                         string // contents of /proc/PID/cgroup, which change when the process is moved
}

// cgroupMount is where a cgroup hierarchy is mounted.
type cgroupMount struct {
	version     int
	root        string            // cgroup that is mounted: in a container not "/", or above its namespace "/../.."
	point       string            // directory
	controllers map[string]string // of v1: the keys
}

// cgroupMounts finds the mounts of cgroup hierarchies in /proc/self/mountinfo.
func cgroupMounts(fs FS) ([]cgroupMount, error) {
	proc, err := procfs.NewFS(fs.Path("/proc"))
	if err != nil {
		return nil, fmt.Errorf("reading the cgroup mounts: %w", err)
	}
	all, err := proc.GetMounts()
	if err != nil {
		return nil, fmt.Errorf("reading the cgroup mounts: %w", err)
	}
	var mounts []cgroupMount
	for _, m := range all {
		c := cgroupMount{root: unescapeMount(m.Root), point: unescapeMount(m.MountPoint)}
		switch m.FSType {
		case "cgroup2":
			c.version = 2
		case "cgroup":
			c.version, c.controllers = 1, m.SuperOptions
		default:
			continue
		}
		mounts = append(mounts, c)
	}
	return mounts, nil
}

// unescapeMount turns \040 and the like into their bytes (proc_pid_mountinfo(5)).
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// cgroupPaths reads /proc/PID/cgroup: "4:cpu,cpuacct:/path" per v1 hierarchy and "0::/path" for v2, by controller (""
// is v2).
func cgroupPaths(b []byte) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			paths[controller] = f[2]
		}
	}
	return paths
}

// cpuPath is the CPU cgroup as /proc/PID/cgroup names it.
func cpuPath(b []byte) string {
	paths := cgroupPaths(b)
	if p, v1 := paths["cpu"]; v1 {
		return p
	}
	return paths[""]
}

// resolveCgroups finds the directories of a process' cgroups.
func resolveCgroups(fs FS, pid int) (cgroups, error) {
	raw, err := fs.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return cgroups{}, fmt.Errorf("reading the cgroups of process %d: %w", pid, err)
	}
	return cgroupsOf(fs, raw)
}

// cgroupsOf finds the directories of the cgroups that /proc/PID/cgroup names.
func cgroupsOf(fs FS, raw []byte) (cgroups, error) {
	mounts, err := cgroupMounts(fs)
	if err != nil {
		return cgroups{}, err
	}
	paths := cgroupPaths(raw)
	c := cgroups{
		raw: string(raw), unified: place(fs, mounts, 2, "", paths), cpuacct: place(fs, mounts, 1, "cpuacct", paths),
	}
	for _, controller := range []struct {
		name string
		to   *cgroup
	}{{"cpu", &c.cpu}, {"memory", &c.memory}, {"freezer", &c.freezer}, {"blkio", &c.blkio}} {
		*controller.to = place(fs, mounts, 1, controller.name, paths)
		if _, v1 := paths[controller.name]; !v1 {
			*controller.to = c.unified
		}
	}
	return c, nil
}

// cpuCgroup is the place where the CPU quota of a process is set.
func cpuCgroup(fs FS, paths map[string]string, mounts []cgroupMount) cgroup {
	if _, v1 := paths["cpu"]; v1 {
		return place(fs, mounts, 1, "cpu", paths)
	}
	return place(fs, mounts, 2, "", paths)
}

// place is the cgroup below the mount that shows it. A path that begins with "/.." is outside the cgroup namespace of
// slowpath: it can be found where a cgroup above is mounted.
func place(fs FS, mounts []cgroupMount, version int, controller string, paths map[string]string) cgroup {
	p, ok := paths[controller]
	if !ok {
		return cgroup{}
	}
	for _, m := range mounts {
		if _, mounted := m.controllers[controller]; m.version != version || (version == 1 && !mounted) {
			continue
		}
		below, ok := belowRoot(p, m.root)
		if strings.HasPrefix(m.root, "/..") {
			below, ok = hostPath(fs, m, controller, p)
		}
		if ok {
			return cgroup{version: version, mount: m.point, path: below}
		}
	}
	return cgroup{}
}

func belowRoot(p, root string) (string, bool) {
	if root == "/" {
		return path.Clean(p), !strings.HasPrefix(p, "/..")
	}
	if p == root {
		return "/", true
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/")
	if !ok || strings.HasPrefix(rest, "..") {
		return "", false
	}
	return path.Clean("/" + rest), true
}

// cpuLimit is the CPU quota of one level, in microseconds; quota -1 is none.
type cpuLimit struct {
	Path     string `json:"path"`
	QuotaUs  int64  `json:"quota_us"`
	PeriodUs int64  `json:"period_us"`
	BurstUs  int64  `json:"burst_us,omitempty"`
}

// cpuLimits lists the levels that have a quota, own cgroup first: a Kubernetes pod has one limit at the container and
// one at the pod.
func cpuLimits(fs FS, c cgroup) []cpuLimit {
	var limits []cpuLimit
	for _, p := range c.levels() {
		if l, ok := readCPULimit(fs, c, p); ok && l.QuotaUs > 0 {
			limits = append(limits, l)
		}
	}
	return limits
}

func readCPULimit(fs FS, c cgroup, p string) (cpuLimit, bool) {
	dir := path.Join(c.mount, p)
	l := cpuLimit{Path: p, QuotaUs: -1}
	if c.version == 1 {
		quota, err := strconv.ParseInt(readLine(fs, dir+"/cpu.cfs_quota_us"), 10, 64)
		if err != nil {
			return l, false
		}
		l.QuotaUs = quota
		l.PeriodUs, _ = strconv.ParseInt(readLine(fs, dir+"/cpu.cfs_period_us"), 10, 64)
		l.BurstUs, _ = strconv.ParseInt(readLine(fs, dir+"/cpu.cfs_burst_us"), 10, 64)
		return l, true
	}
	f := strings.Fields(readLine(fs, dir+"/cpu.max"))
	if len(f) != 2 {
		return l, false
	}
	if f[0] != "max" {
		l.QuotaUs, _ = strconv.ParseInt(f[0], 10, 64)
	}
	l.PeriodUs, _ = strconv.ParseInt(f[1], 10, 64)
	l.BurstUs, _ = strconv.ParseInt(readLine(fs, dir+"/cpu.max.burst"), 10, 64)
	return l, true
}
