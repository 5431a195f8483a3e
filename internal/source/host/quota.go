package host

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"slowpath/internal/clock"
)

// Quotas finds the CPU quota by which threads of this host are throttled.
type Quotas struct {
	FS    FS
	Clock clock.Clock

	threads map[int]string    // contents of /proc/TID/cgroup, which outlive the thread
	known   map[string]*quota // by these contents
	mounts  []cgroupMount
	read    int64 // when the mounts were read
}

// quota is what was found at a time, and how often each level with a quota had throttled until then.
type quota struct {
	cgroup string
	cores  float64
	at     int64
	counts map[string]int64
}

const (
	quotaAge   = int64(1e9) // nanoseconds after which it is read again: threads move, limits change
	maxQuotas  = 1024
	maxHolders = 4096 // threads that are remembered
)

// Of is the cgroup by whose quota a thread was just throttled, and that quota in cores. It is "" where no quota is
// seen, and where several levels have a quota and it is not known which of them it was.
func (q *Quotas) Of(tid int) (cgroup string, cores float64) {
	if q.threads == nil || len(q.threads) > maxHolders {
		q.threads = map[int]string{}
	}
	if q.known == nil || len(q.known) > maxQuotas {
		q.known = map[string]*quota{}
	}
	last := q.threads[tid]
	if b, err := q.FS.ReadFile(fmt.Sprintf("/proc/%d/cgroup", tid)); err == nil {
		if cgroup, cores = q.of(string(b)); cgroup != "" || last == "" {
			q.threads[tid] = string(b)
			return cgroup, cores
		}
	}
	return q.of(last) // the thread has ended: a zombie is in the root
}

// of is Of for a thread with these contents of /proc/TID/cgroup.
func (q *Quotas) of(raw string) (cgroup string, cores float64) {
	if raw == "" {
		return "", 0
	}
	now := q.Clock.Now()
	k := q.known[raw]
	if k == nil || now-k.at >= quotaAge {
		k = q.readLevels(raw, k, now)
		q.known[raw] = k
	}
	return k.cgroup, k.cores
}

// readLevels reads the levels anew.
func (q *Quotas) readLevels(raw string, last *quota, now int64) *quota {
	k := &quota{at: now, counts: map[string]int64{}}
	if q.mounts == nil || now-q.read >= quotaAge {
		mounts, err := cgroupMounts(q.FS)
		if err != nil {
			return k
		}
		q.mounts, q.read = mounts, now
	}
	c := cpuCgroup(q.FS, cgroupPaths([]byte(raw)), q.mounts)
	limits := cpuLimits(q.FS, c)
	var throttled, lately []cpuLimit
	for _, l := range limits {
		n := q.timesThrottled(path.Join(c.mount, l.Path, "cpu.stat"))
		k.counts[l.Path] = n
		if n > 0 {
			throttled = append(throttled, l)
		}
		if last != nil && n > last.counts[l.Path] {
			lately = append(lately, l)
		}
	}
	switch {
	// nr_throttled may lag: it is counted when a period ends, and runtime that other CPUs give back ends a wait before
	case len(limits) == 1:
		throttled = limits
	case len(throttled) > 1:
		throttled = lately
	}
	if len(throttled) == 1 && throttled[0].PeriodUs > 0 {
		l := throttled[0]
		k.cgroup, k.cores = l.Path, float64(l.QuotaUs)/float64(l.PeriodUs)
	}
	return k
}

func (q *Quotas) timesThrottled(stat string) int64 {
	b, err := q.FS.ReadFile(stat)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "nr_throttled "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // 0 where it is none
			return n
		}
	}
	return 0
}
