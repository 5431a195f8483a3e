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

// supportClientQuota is what the host's files say of the cgroup.
func (f *Finding) supportClientQuota(n *facts.Node, path string) {
	quota, known := n.CgroupSeries(path, series.CgroupQuota).Last()
	period, _ := n.CgroupSeries(path, series.CgroupPeriod).Last()
	if path == "" || !known || quota <= 0 || period <= 0 {
		return
	}
	f.support(recording.SourceHost, quota/period, "cores",
		"the quota of %s is %.2f cores (%.0f µs of every %.0f µs)", path, quota/period, quota, period)
	periods := n.CgroupSeries(path, series.CgroupPeriods).Growth()
	throttled := n.CgroupSeries(path, series.CgroupThrottled).Growth()
	if throttled > 0 {
		f.support(recording.SourceHost, throttled, "periods",
			"cpu.stat: throttled in %.0f of %.0f periods, %s in all", throttled, periods,
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
	of func(hosts.CodeSample) bool) (string,
	bool,
) {
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
