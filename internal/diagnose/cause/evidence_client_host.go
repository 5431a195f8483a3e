package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// supportLateCalls is the evidence that all causes at the client have: how many calls, of which processes, and that the
// reply was there.
func (f *Finding) supportLateCalls(n *facts.Node, l *caller.LateReads, why string) *caller.Caller {
	c := caller.CallerByPID(n, l.PIDs[0])
	more := ""
	if k := len(l.PIDs) - 1; k > 0 {
		more = fmt.Sprintf(" and %d more", k)
	}
	f.support(recording.SourceTap, float64(l.Calls), "calls",
		"the replies to %s were in the sockets of %s%s, on %s, %s: up to %s in one call",
		ofSlow(l.Calls, n), c.Name, more, counted(caller.SlowConnCount(n, c.PID), "connection"), why,
		format.Brief(l.MaxNs))
	return c
}

// supportCores says how much CPU time a process used.
func (f *Finding) supportCores(n *facts.Node, pid int) {
	if run := cores(n, pid); run > 0 {
		threads, _ := n.ProcessSeries(pid, series.ClientThreads).Max()
		f.support(recording.SourceHost, run, "cores", "it used %.2f cores with %s", run, counted(threads, "thread"))
	}
}

// cores is how much CPU time a process used, in cores.
func cores(n *facts.Node, pid int) float64 {
	return facts.Rate(n.ProcessSeries(pid, series.ClientCPU)) / 1e9
}

// quotaOf is the quota of a process's cgroup according to its files: time of every period, in microseconds. Its path is
// empty where it has none.
func quotaOf(n *facts.Node, path string) (quota, period float64, ok bool) {
	quota, _ = n.CgroupSeries(path, series.CgroupQuota).Last()
	period, _ = n.CgroupSeries(path, series.CgroupPeriod).Last()
	return quota, period, path != "" && quota > 0 && period > 0
}

// supportClientQuota is what the host's files say of the cgroup.
func (f *Finding) supportClientQuota(n *facts.Node, path string) {
	quota, period, ok := quotaOf(n, path)
	if !ok {
		return
	}
	f.support(recording.SourceHost, quota/period, "cores",
		"the quota of %s is %.2f cores (%.0f µs of every %.0f µs)", path, quota/period, quota, period)
	if throttled := n.CgroupSeries(path, series.CgroupThrottled).Growth(); throttled > 0 {
		f.support(recording.SourceHost, throttled, "periods",
			"cpu.stat: throttled in %.0f of %.0f periods, %s in all", throttled,
			n.CgroupSeries(path, series.CgroupPeriods).Growth(),
			format.Brief(int64(n.CgroupSeries(path, series.CgroupThrottledNs).Growth())))
	}
}

// loseUnsent claims the time that calls waited in processes that stood still, before they were sent.
func (f *Finding) loseUnsent(n *facts.Node, l *caller.LateReads) {
	if l.UnsentNs > 0 {
		f.lose(n, facts.LostWaiting, l.UnsentNs, l.MaxNs)
	}
}

// supportUnreadCode says where threads of the caller were in their program while replies were not read.
func (f *Finding) supportUnreadCode(n *facts.Node, c *caller.Caller, who string,
	of func(hosts.CodeSample) bool,
) (function string, known bool) {
	unread, _ := caller.Unread(n, c.PID)
	return f.supportCode(n, c, unread, who, of)
}

// supportCode says where threads of the caller were in their program in some time, by samples of their stacks; false
// where that is not known.
func (f *Finding) supportCode(n *facts.Node, c *caller.Caller, in facts.Spans, who string,
	of func(hosts.CodeSample) bool,
) (function string, known bool) {
	code, known := hosts.CodeIn(n, c.PID, in, of)
	if known {
		f.support(recording.SourceProfile, float64(code.In), "samples",
			"in %d of %d samples meanwhile %s was in %s", code.In, code.Samples, who, format.Name(code.Text()))
	}
	return format.Name(code.Function), known
}
