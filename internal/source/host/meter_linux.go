package host

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/source/hostfs"
)

// Meter reads the CPU time of a process, and for how long its quota throttled it, as often as it is asked. It is for
// one goroutine.
type Meter struct {
	fs     FS
	pid    int
	cpu    cgroup
	limits []cpuLimit
}

// Usage is the CPU time of a process since it began, and the throttling of its cgroups since they were made.
type Usage struct {
	Threads []ThreadUsage // the main thread first
	State   byte          // of the main thread, as /proc has it: R, S, D, …
	CPU     int           // on which the main thread last ran
	CPUs    []int         // on which it may run
	Quotas  []QuotaUsage  // of the cgroups above the process that have one, its own first
}

// ThreadUsage is the time of one thread on a CPU, and ready to run without one; the latter includes throttled time.
type ThreadUsage struct {
	TID        int
	Name       string
	Run, Ready time.Duration
}

// QuotaUsage is how often and for how long a cgroup had used its CPU quota up. Held is summed over CPUs.
type QuotaUsage struct {
	Cgroup             string
	Cores              float64
	Periods, Throttled int64
	Held               time.Duration
}

// NewMeter finds the cgroup of a process. A process that is not there is ErrNotHere.
func NewMeter(fs FS, pid int) (*Meter, error) {
	if fs == nil {
		fs = Root{}
	}
	m := &Meter{fs: fs, pid: pid}
	if _, err := fs.ReadFile(m.name("stat")); err != nil {
		return nil, fmt.Errorf("%w: process %d: %w", ErrNotHere, pid, err)
	}
	if groups, err := resolveCgroups(fs, pid); err == nil { // without cgroups there is no quota
		m.cpu = groups.cpu
		m.limits = cpuLimits(fs, groups.cpu)
	}
	return m, nil
}

func (m *Meter) name(file string) string { return fmt.Sprintf("/proc/%d/%s", m.pid, file) }

// Read reads it all. A process that has ended is ErrGone.
func (m *Meter) Read() (Usage, error) {
	var u Usage
	main, err := m.thread(m.pid)
	if err != nil {
		return u, fmt.Errorf("%w: %w", ErrGone, err)
	}
	u.Threads = []ThreadUsage{main}
	names, err := m.fs.ReadDir(m.name("task"))
	if err != nil {
		return u, fmt.Errorf("%w: %w", ErrGone, err)
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxThreads)] {
		tid, err := strconv.Atoi(name)
		if err != nil || tid == m.pid {
			continue
		}
		if t, err := m.thread(tid); err == nil { // it may have ended
			u.Threads = append(u.Threads, t)
		}
	}
	if b, err := m.fs.ReadFile(m.name(fmt.Sprintf("task/%d/stat", m.pid))); err == nil {
		if s, ok := parseStat(b); ok {
			u.State, u.CPU = s.state, s.cpu
		}
	}
	u.CPUs, u.Quotas = m.CPUs(), m.Quotas()
	return u, nil
}

// CPUs are those on which the main thread may run, sorted; none where that may not be read.
func (m *Meter) CPUs() []int {
	b, err := m.fs.ReadFile(m.name("status"))
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(parseCPUSet(hostfs.StatusField(b, "Cpus_allowed_list"))))
}

func (m *Meter) thread(tid int) (ThreadUsage, error) {
	b, err := m.fs.ReadFile(m.name(fmt.Sprintf("task/%d/schedstat", tid)))
	if err != nil {
		return ThreadUsage{}, err
	}
	s, ok := parseSchedstat(b)
	if !ok {
		return ThreadUsage{}, fmt.Errorf("schedstat of thread %d is %.40q", tid, b)
	}
	comm := readLine(m.fs, m.name(fmt.Sprintf("task/%d/comm", tid)))
	return ThreadUsage{TID: tid, Name: comm, Run: time.Duration(s.runNs), Ready: time.Duration(s.delayNs)}, nil
}

// Quotas are the levels of its cgroup that have a CPU quota, with their throttling.
func (m *Meter) Quotas() []QuotaUsage {
	var out []QuotaUsage
	for _, l := range m.limits {
		if l.PeriodUs <= 0 {
			continue
		}
		b, err := m.fs.ReadFile(path.Join(m.cpu.mount, l.Path, "cpu.stat"))
		if err != nil {
			continue
		}
		if s, ok := parseCPUStat(b); ok {
			out = append(out, QuotaUsage{
				Cgroup: l.Path, Cores: float64(l.QuotaUs) / float64(l.PeriodUs),
				Periods: s.periods, Throttled: s.throttled,
				Held: time.Duration(s.throttledNs),
			})
		}
	}
	return out
}

// CPUTimes is for how long one CPU was busy with anything, and used by the hypervisor for others (steal).
type CPUTimes struct{ Busy, Steal time.Duration }

// ReadCPUs reads the times of each CPU since boot, exact to 10 ms.
func ReadCPUs(fs FS) (map[int]CPUTimes, error) {
	if fs == nil {
		fs = Root{}
	}
	b, err := fs.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("reading the times of the CPUs: %w", err)
	}
	out := map[int]CPUTimes{}
	parseCPUTimes(b, func(cpu int, t cpuTimes) {
		if cpu >= 0 {
			out[cpu] = CPUTimes{Busy: time.Duration(t.busy), Steal: time.Duration(t.steal)}
		}
	})
	return out, nil
}
