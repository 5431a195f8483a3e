package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientCFSThrottled: the caller's cgroup has used up its CPU quota. The replies are there, but its threads may not run
// to read them.
var clientCFSThrottled = Cause{
	ID:      "client-cfs-throttled",
	Changes: []string{"client cpu quota"},
	After:   []string{"gomaxprocs-over-quota"},
	Explain: explainClientThrottled,
}

func explainClientThrottled(n *facts.Node) *Finding {
	l := caller.LateReadsOf(n, true, caller.ThrottledUnreadNs)
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim)
	f.loseUnsent(n, l)
	c := f.supportLateCalls(n, l, "while its cgroup was throttled")
	t := hosts.ProcessThreads(n.Case)[c.PID]
	if t != nil && len(t.Throttled) > 0 {
		f.support(recording.SourceTap, float64(len(t.Throttled)), "times",
			"its threads were throttled %s, %s in all; for %s at least one of them was",
			facts.TimesText(len(t.Throttled)), format.Brief(t.ThrottledNs), format.Brief(t.Throttled.TotalNs()))
	}
	path := hosts.CgroupPath(n.Case, c.PID)
	if t != nil && t.MainQuota().Cgroup != "" {
		q := t.MainQuota()
		path = q.Cgroup
		f.support(recording.SourceTap, q.Cores, "cores",
			"the CPU quota of %s throttled them, %.2f cores", q.Cgroup, q.Cores)
	}
	f.supportClientQuota(n, path)
	f.supportCores(n, c.PID)
	if cl := n.InState(account.Throttled); cl.Ns > 0 {
		f.doubt(recording.SourceTap, float64(cl.Calls), "calls",
			"the server was throttled, too, in %d of the slow calls", cl.Calls)
	}
	f.FixSteps = []remedy.Step{clientQuotaStep(n, path, c.Name), orElse(inApplication("threads-fit-quota",
		"If a limit must stay: as many threads as it has cores, so that it is not spent at the start of each period "+
			"(Go 1.25 and later do so by themselves, before GOMAXPROCS; JVM -XX:ActiveProcessorCount; .NET "+
			"DOTNET_PROCESSOR_COUNT), and bursts (cpu.max.burst, cpu.cfs_burst_us) where it is not used up on "+
			"average"))}
	return f
}
