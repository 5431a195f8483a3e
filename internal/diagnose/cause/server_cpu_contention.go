package cause

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// serverCPUContention: the main thread was in the run queue, and the scheduler ran others.
var serverCPUContention = Cause{
	ID:      "server-cpu-contention",
	Class:   ServerStall,
	Changes: []string{"cpus"},
	Explain: explainContention,
}

// explainContention claims what foreign processes held the CPU for. Callers on the same CPUs are load, and slowpath is
// the observer: their part is nobody's fault.
func explainContention(n *facts.Node) *Finding {
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			if s.Actor == account.Server && s.State == account.RunQueue {
				times.Add(s, mainthread.ForeignNs(n, s))
			}
		}
		return times
	})
	delay := max(n.Growth(series.MainDelay)-float64(mainthread.StateNs(n, recording.KindThrottled)), 0)
	run := n.Growth(series.MainRun)
	foreign := mainthread.ForeignShare(n)
	if foreign == 0 || run == 0 {
		return nil
	}
	f := finding(n, cl)
	if watched := float64(n.EndNs - n.StartNs); cl.Calls == 0 && n.Ledger.Users.Calls > 0 {
		// As many calls wait with the thread as are under way.
		f.lose(n, facts.LostInCalls, delay*foreign*connection.CallTimeNs(n)/watched, 0)
	}
	if cl.Calls > 0 {
		f.support(mainthread.StateSource(n), float64(cl.Calls), "calls", "%s waited while the main thread was in the "+
			"run queue and others had its CPU, up to %s in one call", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	}
	f.support(recording.SourceHost, delay, "ns",
		"for every 1 s on the CPU the main thread was in the run queue for %s; %s in %.0f s (/proc/PID/schedstat)",
		format.Brief(int64(delay/max(run, 1)*1e9)), format.Brief(int64(delay)), n.Seconds())
	f.supportHolders(n)
	who := mainthread.Neighbours(n)
	if i := slices.IndexFunc(who, movable); i >= 0 && who[i].Child {
		f.Title = "The server's " + jobOfChild(who[i]).child() + " uses its CPU: the main thread waits in the run queue"
	}
	if len(who) > 0 {
		var names []string
		for _, w := range who[:min(degree.Listed, len(who))] {
			names = append(names, fmt.Sprintf("%s %.2f cores", neighbourName(w), w.Cores))
		}
		f.support(recording.SourceHost, who[0].Cores, "cores",
			"also running on its CPUs: %s", strings.Join(names, ", "))
	}
	f.doubtLoad(n, foreign)
	f.doubtSoftirqs(n)
	f.FixSteps = contentionFix(n, who)
	return f
}

// doubtLoad: the callers are part of the server's load, not others that took its CPU. What they ask for is the first
// thing to check.
func (f *Finding) doubtLoad(n *facts.Node, foreign float64) {
	if load := 1 - foreign; load >= facts.MinShare {
		f.doubt(mainthread.StateSource(n), load, "of the waits", "for %s of its waits its own threads, its callers, "+
			"slowpath or softirqs had the CPU: that is load, and does not count here", format.Percent(load))
	}
}

// movable reports whether another CPU for a process would not only reduce the load, as for callers, and is possible:
// threads of the kernel cannot be moved.
func movable(w recording.Neighbour) bool {
	return !w.Self() && !w.Caller && !strings.HasPrefix(w.Command, hosts.KsoftirqdPrefix) &&
		!strings.HasPrefix(w.Command, "kworker/")
}

// neighbourName is a process by its name and number, or as what it is for the server.
func neighbourName(w recording.Neighbour) string {
	if w.Child {
		return fmt.Sprintf("its %s (%s[%d])", jobOfChild(w).child(), format.Name(w.Command), w.PID)
	}
	return fmt.Sprintf("%s[%d]", format.Name(w.Command), w.PID)
}

// serverJob is what a server forks a child for.
type serverJob struct {
	does   string
	why    string // it forked, as recording.ForkDetail has it
	option string // that has the child's CPUs; empty where there is none
}

// child is the child of the server that does the job.
func (j serverJob) child() string { return "own child that " + j.does }

// writesFile is how the children of servers call themselves that write a file (rdb.c and aof.c: redisSetProcTitle), or
// send one to replicas.
var writesFile = regexp.MustCompile(`^(redis|valkey|keydb)-(rdb|aof)-`)

// jobOfChild is the job of a server's child, by what it calls itself. Modules fork, too, for work of their own.
func jobOfChild(w recording.Neighbour) serverJob {
	switch name := writesFile.FindStringSubmatch(w.Command); {
	case name == nil:
		return serverJob{does: "works beside it"}
	case name[2] == "aof":
		return serverJob{"rewrites the AOF", "aof-rewrite", "aof_rewrite_cpulist"}
	}
	return serverJob{"writes the snapshot", "rdb", "bgsave_cpulist"}
}

// contentionFix keeps others off the CPU on which the main thread runs. Children of servers end within seconds: the
// server itself gives them their CPUs.
func contentionFix(n *facts.Node, who []recording.Neighbour) (fix []remedy.Step) {
	cpu, known := hosts.MainCPU(n)
	cpus := ""
	if known {
		cpus = otherCPUs(n, cpu)
	}
	var others []recording.Neighbour
	var jobs []serverJob
	for _, w := range who {
		job := jobOfChild(w)
		switch {
		case !movable(w):
		case job.option == "":
			others = append(others, w)
		case !slices.Contains(jobs, job):
			jobs = append(jobs, job)
			fix = append(fix, job.otherCPUs(n, w, cpu, cpus)...)
		}
	}
	if i := slices.IndexFunc(who, movable); i >= 0 && jobOfChild(who[i]).option == "" {
		fix = append(moveOthers(others, cpu, cpus), fix...) // the one that used most comes first
	} else {
		fix = append(fix, moveOthers(others, cpu, cpus)...)
	}
	return append(fix, change("own-cpus", "So that it stays so: CPUs that only the server may use, by a cpuset "+
		"(systemd: AllowedCPUs= of the other units; Kubernetes: the static CPU manager and whole CPUs as request and "+
		"limit)"))
}

// moveOthers keeps processes off a CPU; cpus are the other ones, empty where there are none.
func moveOthers(who []recording.Neighbour, cpu int, cpus string) []remedy.Step {
	var pids []int
	var names []string
	for _, w := range who {
		pids, names = append(pids, w.PID), append(names, neighbourName(w))
	}
	const id = "move-other-processes"
	switch {
	case len(who) == 0:
		return nil
	case cpus == "":
		return []remedy.Step{
			change(id, "%s", "Move "+strings.Join(names, ", ")+" to other CPUs than the server's main thread uses, or "+
				"to another machine"),
		}
	}
	return []remedy.Step{{
		ID: id, Kind: remedy.Command, Command: moveProcesses(pids, cpus),
		Text: fmt.Sprintf("Keep %s off CPU %d, on which the server's main thread runs (taskset prints the CPUs "+
			"that they had)", strings.Join(names, ", "), cpu),
		Risk: "they share the other CPUs, and may run slower",
	}}
}

// otherCPUs keeps the child of a server off the CPU of the main thread, where another one is known. Of which server a
// child is that is not this one's, only its own configuration says.
func (j serverJob) otherCPUs(n *facts.Node, w recording.Neighbour, cpu int, cpus string) []remedy.Step {
	const id = "other-cpus-for-child"
	switch {
	case !w.Child:
		return []remedy.Step{{
			ID: id, Kind: remedy.Change, Since: "Redis 6.0",
			Text: fmt.Sprintf("%s is the child of a server, which %s: give it other CPUs by that server's %s",
				neighbourName(w), j.does, j.option),
		}}
	case cpus == "":
		return forkLess(n, j.why)
	}
	s := remedy.ConfigSet(n, id, j.option, cpus, fmt.Sprintf("Keep the server's %s off CPU %d, on which the main "+
		"thread runs", j.child(), cpu))
	s.Since = "Redis 6.0"
	return []remedy.Step{s.Risking("the child shares the other CPUs, and may take longer")}
}

// supportHolders names what had the CPU when the main thread got it back, by share of its waits.
func (f *Finding) supportHolders(n *facts.Node) {
	waits := mainthread.Exact(n, account.RunQueue)
	all, by := mainthread.SumWaits(waits), map[string]int64{}
	children := map[int]string{}
	for _, w := range mainthread.Neighbours(n) {
		if w.Child {
			children[w.PID] = "its " + jobOfChild(w).child()
		}
	}
	for _, s := range waits {
		by[cmp.Or(children[hosts.PIDOf(s.Culprit)], s.Culprit)] += s.Ns()
	}
	if all.Count == 0 {
		return
	}
	var names []string
	for _, name := range facts.KeysByValue(by) {
		share := 100 * float64(by[name]) / float64(all.Ns)
		if name != "" && share >= 1 && len(names) < degree.Listed {
			names = append(names, fmt.Sprintf("%s %.0f %%", name, share))
		}
	}
	text := fmt.Sprintf("the main thread waited in the run queue %s for at least 0.2 ms, %s in all, up to %s at a time",
		facts.TimesText(all.Count), format.Brief(all.Ns), format.Brief(all.MaxNs))
	if len(names) > 0 {
		text += "; its CPU meanwhile ran " + strings.Join(names, ", ")
	}
	f.support(recording.SourceTap, float64(all.Ns), "ns", "%s", text)
}

// doubtSoftirqs separates other processes from the kernel's own work on the CPU: where softirqs had it for most of the
// waits, the waits are theirs; where less, other processes have it with or without them.
func (f *Finding) doubtSoftirqs(n *facts.Node) {
	q, ok := hosts.SoftirqOf(n)
	if !ok {
		return
	}
	share, how := q.ShareOfRest(), "of what the server did not get of it"
	if waits := mainthread.Exact(n, account.RunQueue); len(waits) > 0 {
		var had int64
		for _, s := range waits {
			had += q.NsWithin(s)
		}
		share, how = float64(had)/float64(max(mainthread.SumWaits(waits).Ns, 1)), "of the waits of the main thread"
	}
	text := fmt.Sprintf("softirqs and %s had the main thread's CPU %d for "+
		"%.0f %% of the time (/proc/stat) and %.0f %% %s", q.ThreadName(), q.CPU, 100*q.Share(n), 100*share, how)
	if !q.Heavy(n) || share < mostOfRunQueue {
		f.support(recording.SourceHost, share, "of the waits", "%s: other processes had it for the rest", text)
	} else {
		f.doubt(recording.SourceHost, share, "of the waits", "%s", text)
	}
}
