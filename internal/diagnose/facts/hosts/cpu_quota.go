package hosts

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// QuotaUse is how a cgroup above the server's process used its CPU quota during the watch.
type QuotaUse struct {
	// Path is the path of the cgroup.
	Path string
	// QuotaNs is the CPU time per period, PeriodNs the period, in nanoseconds; both 0 where there is no quota. Where it
	// was changed during the watch, what follows from both is not known.
	QuotaNs, PeriodNs float64
	// Periods is the number of periods in which the cgroup ran, Throttled of those in which it was throttled.
	Periods, Throttled float64
	// ThrottledNs is for how long, in nanoseconds, summed over CPUs.
	ThrottledNs float64
	// UsedNs is the CPU time that it used in the whole watch, in nanoseconds; 0 where that is not known.
	UsedNs float64
	// Seconds is the number of samples, one per second, in which it was throttled, and whose use is known. Of these,
	// Share is the part of the quota that it used, Often the part of the periods in which it was throttled, both 0..1.
	// Spare is how many periods' quota it left unused in such a second.
	Seconds             int
	Share, Often, Spare float64
	// Below: it was throttled although it had not used up its quota. Its use in all periods, UsedNs, is less than the
	// quota of those in which it was throttled, by more than the kernel's accounting allows.
	Below bool
	// Others is the part of UsedNs, 0..1, that other processes used than those in the server's branch below this
	// cgroup; -1 where that is not known.
	Others float64
}

const (
	// defaultSliceNs is the quota that a CPU takes at once, in nanoseconds.
	// Bound: kernel, sysctl_sched_cfs_bandwidth_slice.
	defaultSliceNs = 5e6
	// longestTickNs: a CPU notices at its tick that it has used its slice up.
	// Bound: kernel, CONFIG_HZ of 100 or more.
	longestTickNs = 10e6
)

// Bursts: in the seconds in which it was throttled, it used the minority of its quota, was throttled in the minority of
// the periods, and left at least one period's quota unused.
func (q QuotaUse) Bursts() bool {
	return q.Seconds > 0 && !q.UsedUp() && q.Often < degree.Most && q.Share < degree.Most
}

// TooSmall: in these seconds it used its quota up, or was throttled in the majority of the periods.
func (q QuotaUse) TooSmall() bool { return q.UsedUp() || q.Seconds > 0 && q.Often >= degree.Most }

// UsedUp: in the seconds in which it was throttled, it left less than one period's quota unused.
func (q QuotaUse) UsedUp() bool { return q.Seconds > 0 && q.Spare < 1 }

// Throttling are the levels of the server's cgroup that were throttled, the longest first.
func Throttling(n *facts.Node) []QuotaUse {
	var all []QuotaUse
	for _, subject := range n.Rec.Subjects(recording.SourceHost, recording.CgroupPrefix) {
		path := strings.TrimPrefix(subject, recording.CgroupPrefix)
		if q := quotaUse(n, path); q.Throttled > 0 && underCgroup(n, path) {
			all = append(all, q)
		}
	}
	slices.SortStableFunc(all, func(a, b QuotaUse) int { return cmp.Compare(b.ThrottledNs, a.ThrottledNs) })
	return all
}

// underCgroup reports whether a cgroup with a quota is one of the levels that the server runs under.
func underCgroup(n *facts.Node, path string) bool {
	return len(CgroupOf(n).Levels) == 0 ||
		slices.ContainsFunc(CgroupOf(n).Levels, func(l CgroupLevel) bool { return l.Path == path })
}

func quotaUse(n *facts.Node, path string) QuotaUse {
	q := QuotaUse{
		Path: path, Others: -1,
		Periods:     n.CgroupSeries(path, series.CgroupPeriods).Growth(),
		Throttled:   n.CgroupSeries(path, series.CgroupThrottled).Growth(),
		ThrottledNs: n.CgroupSeries(path, series.CgroupThrottledNs).Growth(),
		UsedNs:      n.CgroupSeries(path, series.CgroupUsage).Growth(),
	}
	quota, period := n.CgroupSeries(path, series.CgroupQuota), n.CgroupSeries(path, series.CgroupPeriod)
	if facts.LastValue(quota) <= 0 || facts.LastValue(period) <= 0 {
		return q
	}
	q.QuotaNs, q.PeriodNs = series.CgroupQuota.Ns(facts.LastValue(quota)),
		series.CgroupPeriod.Ns(facts.LastValue(period))
	if q.UsedNs > 0 && constant(quota) && constant(period) {
		missing, slack := q.Throttled*q.QuotaNs-q.UsedNs, quotaSlackNs(n, q.QuotaNs)
		stolen := standstillNs(n) / q.PeriodNs * q.QuotaNs
		// A thread inside the kernel, as for the fork of a large server, is not throttled before it leaves it, and the
		// cgroup pays for that in the periods that follow, maybe from before the watch.
		q.Below = missing > slack+stolen+float64(degree.Long) && (KernelBefore(n, 5, 4) || missing <= q.slicesNs(n))
		if missing <= slack {
			q.compareSeconds(n)
		}
		if child := childOf(path, CgroupOf(n).CPUPath); child != "" {
			if used := n.CgroupSeries(child, series.CgroupUsage).Growth(); used > 0 {
				q.Others = max(0, 1-used/q.UsedNs)
			}
		}
	}
	return q
}

func constant(s recording.Series) bool {
	least, _ := s.Min()
	most, known := s.Max()
	return known && least == most
}

// compareSeconds compares use and quota in those samples in which the cgroup was throttled. Of one that lasts too long
// it is not known when in it they were used; in less than two periods quota cannot be left unused beside a throttled
// one.
func (q *QuotaUse) compareSeconds(n *facts.Node) {
	used, throttled := n.CgroupSeries(q.Path, series.CgroupUsage), n.CgroupSeries(q.Path, series.CgroupThrottled)
	usedNs, quotaNs, periods := 0.0, 0.0, 0.0
	for _, s := range used.Steps() {
		before, _ := throttled.At(s.FromNs)
		after, _ := throttled.At(s.ToNs)
		length := float64(s.ToNs - s.FromNs)
		if after <= before || length > 2*facts.PollIntervalNs || length < 2*q.PeriodNs {
			continue
		}
		q.Seconds++
		usedNs, quotaNs, periods = usedNs+s.Delta, quotaNs+length/q.PeriodNs*q.QuotaNs, periods+after-before
	}
	if q.Seconds > 0 {
		q.Often = periods * q.QuotaNs / quotaNs
		q.Share, q.Spare = usedNs/quotaNs, (quotaNs-usedNs)/q.QuotaNs/float64(q.Seconds)
	}
}

// quotaSlackNs is by how much less than the quota of the periods in which it was throttled a cgroup can have used
// without a fault of the kernel, in nanoseconds, and without an overdraft from before the watch. A period that ends in
// a throttled state has handed out all of its quota. CPUs may hold some of it, in one slice each, and may have
// overdrawn as much as they run until the next tick.
func quotaSlackNs(n *facts.Node, quotaNs float64) float64 {
	slice := SliceNs(n)
	cpus, known := n.Series(series.MachineCPUs).Max()
	if !known {
		return math.Inf(1)
	}
	return 2*quotaNs + cpus*(slice+longestTickNs) // of the first and the last period the watch saw a part
}

// standstillNs is for how long the machine may have stood still, in nanoseconds: its hypervisor ran others, or slowpath
// did not run when it was due. Periods that pass meanwhile are counted, and give no quota.
func standstillNs(n *facts.Node) float64 {
	stood, _ := n.Rec.Of(series.HostLate, "").Max()
	return n.Growth(series.MachineSteal) + stood
}

// slicesNs is the quota that CPUs can have held unused in all throttled periods, in nanoseconds: a kernel without
// faults takes no more away.
func (q QuotaUse) slicesNs(n *facts.Node) float64 {
	cpus, _ := n.Series(series.MachineCPUs).Max()
	return q.Throttled * cpus * SliceNs(n)
}

// SliceNs is the quota that a CPU takes at once from its cgroup, in nanoseconds.
func SliceNs(n *facts.Node) float64 {
	if us, known := n.Series(series.MachineQuotaSlices).Max(); known {
		return series.MachineQuotaSlices.Ns(us)
	}
	return defaultSliceNs
}

// childOf is the cgroup directly below a level on the way down to another one; empty if that is not below it.
func childOf(level, path string) string {
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(level, "/")+"/")
	if !below || rest == "" {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(level, "/") + "/" + first
}

// KernelBefore reports whether the server's host has a Linux older than major.minor. It is false where that is not
// known. Distributions fix faults in older versions, too.
func KernelBefore(n *facts.Node, major, minor int) bool {
	order, ok := facts.CompareVersion(CgroupOf(n).Kernel, major, minor)
	return ok && order < 0
}
