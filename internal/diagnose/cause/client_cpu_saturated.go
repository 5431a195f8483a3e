package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientCPUSaturated: the caller needs more CPU than it has, or others use its CPUs. Its replies wait for a thread that
// is ready to run.
var clientCPUSaturated = Cause{
	ID: "client-cpu-saturated",
	// A throttled cgroup makes its threads wait for the CPU as well.
	// A client that refreshes the map of a big cluster all the time also parses it all the time.
	After:   []string{"client-cfs-throttled", "gomaxprocs-over-quota", "pool-oversized", "topology-refresh-storm"},
	Explain: explainClientCPU,
}

func explainClientCPU(n *facts.Node) *Finding {
	all := hosts.ProcessThreads(n.Case)
	starved := map[int]bool{}
	for pid, t := range all {
		starved[pid] = starvedOf(n, t) >= degree.Most
	}
	l := caller.LateReadsOf(n, false, func(t *hosts.Threads, s account.Segment) int64 {
		switch {
		case caller.IsReplyUnread(s) && hasBusyGoroutines(n, t):
			return max(0, s.Ns()-t.Collecting.OverlapNs(s.FromNs, s.ToNs))
		case !starved[t.PID]:
			return 0
		case s.State == account.RunQueue:
			return t.Queued.OverlapNs(s.FromNs, s.ToNs)
		case caller.IsReplyUnread(s) && !hosts.HasSingleReader(n.Case, t.PID):
			return max(0, t.Queued.OverlapNs(s.FromNs, s.ToNs)-t.Throttled.OverlapNs(s.FromNs, s.ToNs))
		}
		return 0
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim)
	if pid := l.PIDs[0]; !starved[pid] {
		return goroutinesFinding(n, f, l)
	}
	c := f.supportLateCalls(n, l, "while its threads were in the run queue")
	t := all[c.PID]
	f.support(recording.SourceTap, float64(t.QueuedNs), "ns",
		"its threads spent %s in the run queue in %.0f s, %.1f at a time, in waits of at least 0.2 ms",
		format.Brief(t.QueuedNs), n.Seconds(), float64(t.QueuedNs)/1e9/n.Seconds())
	f.supportCores(n, c.PID)
	others := othersOn(t)
	own := float64(t.QueuedBehindOwnNs) / float64(max(t.QueuedNs, 1))
	f.support(recording.SourceTap, own, "of the time",
		"meanwhile its CPUs ran its own threads for %.0f %% of that time%s", own*100, others.text(t))
	if t.ThrottledNs > 0 {
		f.doubt(recording.SourceTap, float64(t.ThrottledNs), "ns",
			"its cgroup was throttled, too: %s of its threads' time", format.Brief(t.ThrottledNs))
	}
	if collected := t.Collecting.TotalNs(); collected > 0 {
		f.doubt(recording.SourceTap, float64(collected), "ns",
			"its runtime collected garbage for %s, which is part of its work", format.Brief(collected))
	}
	if nodes.MapRefreshOf(n).Requesters[c.Name] == 0 {
		f.IndependentOf = []string{"topology-refresh-storm"}
	}
	f.FixSteps = clientCPUFix(c, own, others)
	return f
}

// hasBusyGoroutines reports whether a Go program always computes. A goroutine that waits for a reply is found by the
// next of GOMAXPROCS places that has nothing to run, at once; a reply that stays in its socket says that each of them
// is taken. A quota takes them all away.
func hasBusyGoroutines(n *facts.Node, t *hosts.Threads) bool {
	return hosts.IsGo(n.Case, t.PID) && t.ThrottledNs == 0 &&
		cores(n, t.PID)+float64(t.QueuedNs)/1e9/n.Seconds() >= degree.NearlyAll
}

func goroutinesFinding(n *facts.Node, f *Finding, l *caller.LateReads) *Finding {
	f.Title = "The client's goroutines use all the CPU that the program takes: replies are there, and none runs to " +
		"read them"
	f.Grade = Eliminated // which of them ran while a reply was there was not seen
	c := f.supportLateCalls(n, l, "while other goroutines of the program ran")
	f.support(recording.SourceHost, cores(n, c.PID), "cores",
		"it used %.2f cores in all %.0f s", cores(n, c.PID), n.Seconds())
	anywhere := func(hosts.CodeSample) bool { return true }
	if code, known := f.supportUnreadCode(n, c, "the program", anywhere); known {
		f.Title += "; most of the time it is in " + code
	}
	f.doubt(recording.SourceTap, 0, "", "what its GOMAXPROCS is was not seen, nor how much of this is its garbage "+
		"collector")
	f.FixSteps = []remedy.Step{
		inApplication("gomaxprocs", "Let it use more CPUs, where there are some: GOMAXPROCS in its environment, or "+
			"without runtime.GOMAXPROCS(…) in the program"),
		inApplication("less-computing", "Find the goroutine that computes (`slowpath doctor --profile cpu:PID`, or "+
			"pprof) and make it shorter, or move it to a process of its own"),
	}
	return f
}

// starvedOf is the share of a process's demand for CPU that its threads spent in the run queue.
func starvedOf(n *facts.Node, t *hosts.Threads) float64 {
	// the host source may have found the process late
	run := cores(n, t.PID) * 1e9 * n.Seconds()
	// CPU time was not counted: compare the waits with the wall time
	if run == 0 {
		run = n.Seconds()*1e9 - float64(min(t.QueuedNs, int64(n.Seconds()*1e9)))
	}
	return float64(t.QueuedNs) / max(float64(t.QueuedNs)+run, 1)
}

// rivals are the other processes that used a process's CPUs, the largest first.
type rivals []string

func othersOn(t *hosts.Threads) rivals {
	var out rivals
	for _, name := range facts.KeysByValue(t.CPUHolders) {
		if float64(t.CPUHolders[name]) >= degree.Part*float64(t.QueuedNs) {
			out = append(out, name)
		}
	}
	return out[:min(len(out), degree.Listed)]
}

func (r rivals) text(t *hosts.Threads) string {
	s := ""
	for _, name := range r {
		s += fmt.Sprintf(", %s for %.0f %%", name, float64(t.CPUHolders[name])*100/float64(t.QueuedNs))
	}
	return s
}

func clientCPUFix(c *caller.Caller, own float64, others rivals) []remedy.Step {
	cpu := change("more-cpus", "Give %s more CPUs than it may use now (its affinity, its cpuset, "+
		"requests.cpu of its pod), or share its load among more instances", format.Name(c.Name))
	if own < degree.Most && len(others) > 0 {
		cpu = change("other-cpus", "Move %s to CPUs that %s does not use (taskset -acp, a cpuset), or to "+
			"another machine", format.Name(c.Name), format.Name(others[0]))
	}
	return []remedy.Step{
		cpu,
		inApplication("less-work-per-reply", "Do less work per reply: smaller values, fields instead of whole "+
			"documents (HMGET), a cheaper format than JSON; a profile shows what takes the time"),
		inApplication("fewer-threads", "No more worker threads than CPUs (GOMAXPROCS, -XX:ActiveProcessorCount, "+
			"worker pools), so that the threads that read replies get to run"),
	}
}
