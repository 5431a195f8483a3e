package cause

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// serverCFSThrottled: the server's cgroup has used up its CPU quota, and the kernel does not run it until the next
// period (kernel/sched/fair.c, throttle_cfs_rq).
var serverCFSThrottled = Cause{
	ID:    "server-cfs-throttled",
	Title: "The server's cgroup has too little CPU quota: the kernel stops it until the next period",
	Layer: "server-host",
	Class: ServerStall,
	Needs: Needs{
		T0: "slow calls that end in step with a period of 100 ms while SLOWLOG " +
			"and LATENCY stay empty (a hint, never a proof)",
		T1: "throttled periods in cpu.stat inside the slow calls",
		T2: "each time that the main thread was throttled, with its exact length, inside the clients' own calls",
	},
	Explain: explainThrottled,
}

func explainThrottled(n *facts.Node) *Finding {
	cl := n.InState(account.Throttled)
	if cl.Ns == 0 {
		return nil
	}
	f := finding(n, cl, 0.99)
	f.support(n.StateSource(), float64(cl.Calls), "calls",
		"%s waited while the server was throttled, up to %s in one call", ofSlow(cl.Calls, n),
		format.Brief(cl.MaxNs))
	if w := facts.SumWaits(n.Exact(account.Throttled)); w.Count > 0 {
		f.support(recording.SourceTap, float64(w.Ns), "ns",
			"the quota kept the main thread off the CPU %s, %s in all, up to %s at a time", facts.TimesText(w.Count),
			format.Brief(w.Ns), format.Brief(w.MaxNs))
	}
	path := ""
	for _, subject := range n.Rec.Subjects(recording.SourceHost, recording.CgroupPrefix) {
		periods := n.Rec.Series(recording.SourceHost, subject, "cpu.nr_periods").Growth()
		throttled := n.Rec.Series(recording.SourceHost, subject, "cpu.nr_throttled").Growth()
		ns := n.Rec.Series(recording.SourceHost, subject, "cpu.throttled_ns").Growth()
		if throttled == 0 || !inCgroup(n, subject) {
			continue
		}
		path = strings.TrimPrefix(subject, recording.CgroupPrefix)
		f.support(recording.SourceHost, throttled, "periods",
			"cpu.stat of %s: throttled in %.0f of %.0f periods, %s in all", path, throttled, periods,
			format.Brief(int64(ns)))
		quota, _ := n.Rec.Series(recording.SourceHost, subject, "cpu.quota_us").Last()
		period, _ := n.Rec.Series(recording.SourceHost, subject, "cpu.period_us").Last()
		if quota > 0 && period > 0 {
			f.support(recording.SourceHost, quota/period, "cores",
				"its quota is %.2f cores (%.0f µs of every %.0f µs)", quota/period, quota, period)
		}
	}
	if len(n.Events(recording.SourceServer, recording.KindSlowlog)) == 0 {
		f.support(recording.SourceServer, 0, "entries", "SLOWLOG shows no command that could have held up others")
	}
	f.supportAlone(n)
	f.Fix = throttleFix(n, path)
	f.See = []string{
		"https://docs.kernel.org/scheduler/sched-bwc.html",
		"https://github.com/kubernetes/kubernetes/issues/67577",
	}
	return f
}

// inCgroup reports whether a CPU cgroup is one of the levels that the server runs under.
func inCgroup(n *facts.Node, subject string) bool {
	for _, l := range n.Cgroup.Levels {
		if recording.CgroupPrefix+l.Path == subject {
			return true
		}
	}
	return len(n.Cgroup.Levels) == 0
}

// throttleFix gives the commands for where the limit was set: a pod, a systemd unit, or a bare cgroup.
func throttleFix(n *facts.Node, path string) []string {
	cores := 1.0
	if c, _, ok := n.MainCores(); ok {
		cores = max(cores, math.Ceil(c)+1)
	}
	var fix []string
	switch {
	case n.Cgroup.Pod != "":
		fix = append(fix,
			fmt.Sprintf("In the workload of pod %s, remove resources.limits.cpu of the redis container "+
				"(keep requests.cpu), or set it to at least %.0f:", format.Name(n.Cgroup.Pod), cores+1),
			"kubectl set resources statefulset/NAME -c redis --limits=cpu=0")
	case n.Cgroup.Unit != "":
		fix = append(fix,
			fmt.Sprintf("systemctl set-property %s CPUQuota=   # empty: no limit; else at least %.0f%%",
				format.Shell(n.Cgroup.Unit), (cores+1)*100))
	case n.Cgroup.Version == 2 && path != "":
		fix = append(fix, "echo max > "+format.Shell("/sys/fs/cgroup"+path+"/cpu.max"))
	case path != "":
		fix = append(fix, "echo -1 > "+format.Shell("/sys/fs/cgroup/cpu"+path+"/cpu.cfs_quota_us"))
	}
	fix = append(fix,
		"If a limit must stay: main thread, io-threads, background threads and the fork child of BGSAVE share it; "+
			"give it at least 2 cores more than io-threads, and allow bursts (cpu.cfs_burst_us, cpu.max.burst).")
	return fix
}
