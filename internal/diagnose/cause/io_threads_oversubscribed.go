package cause

import (
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// ioThreadsOversubscribed: the server has more I/O threads than CPUs. They and the main thread wait for each other by
// spinning (networking.c, IOThreadMain), so threads with work wait for threads that spin.
var ioThreadsOversubscribed = Cause{
	ID:      "io-threads-oversubscribed",
	Class:   ServerStall,
	Changes: []string{"io-threads*", "cpus", "cpu quota"},
	Explain: explainIOThreads,
}

func explainIOThreads(n *facts.Node) *Finding {
	t := hosts.IOThreadsOf(n)
	if t.Configured <= 1 {
		return nil
	}
	if !t.Measured {
		return ioThreadsByInfo(n, t)
	}
	main, _ := mainthread.DemandOf(n)
	if float64(t.Configured) < t.CPUs || t.Run < degree.Part || t.Wait < degree.Part*t.Total() && !t.ByQuota {
		return nil
	}
	usedQuota := t.ByQuota && t.Run > main.Run // the main thread alone would not have used it up
	cl := n.Claim(func(_ account.Account, s account.Segment) bool {
		return facts.IsUnexplainedWait(s) ||
			s.Actor == account.Server && (s.State == account.RunQueue || s.State == account.Throttled && usedQuota)
	})
	f := finding(n, cl)
	others := mainthread.TotalNeighbourCores(n)
	mine := t.Total() / (t.Total() + others)
	f.loseOfCalls(n, main.Wait/max(main.Total(), 1e-9), 0)
	f.scale(min(1, 2*mine))
	f.support(recording.SourceServer, float64(t.Configured), "threads",
		"io-threads is %d, while the server has %s CPUs", t.Configured, format.Rounded(t.CPUs))
	f.support(recording.SourceHost, t.Wait, "cores",
		"its I/O threads used %.2f cores and were in the run queue for another %.2f", t.Run, t.Wait)
	f.support(recording.SourceHost, main.Wait, "of the time",
		"the main thread ran %.0f %% of the time and was in the run queue %.0f %%", main.Run*100, main.Wait*100)
	f.supportOwnHolders(n)
	if others > t.Total() {
		f.doubt(recording.SourceHost, others, "cores",
			"other processes used more of its CPUs than its I/O threads wanted, %.2f cores", others)
	}
	f.FixSteps = ioThreadsFix(n, t)
	return f
}

// supportOwnHolders says for how much of the main thread's time in the run queue the server's own threads had the CPU.
func (f *Finding) supportOwnHolders(n *facts.Node) {
	all, own := mainthread.SumWaits(mainthread.Exact(n, account.RunQueue)), int64(0)
	for _, s := range mainthread.Exact(n, account.RunQueue) {
		if strings.HasPrefix(s.Culprit, "io_thd") {
			own += s.Ns()
		}
	}
	if own > 0 {
		f.support(recording.SourceTap, float64(own), "ns", "of %s in the run queue, %.0f %% ended when one of the "+
			"server's own I/O threads left the CPU", format.Brief(all.Ns), 100*float64(own)/float64(all.Ns))
	}
}

// ioThreadsByInfo judges without the host: active I/O threads never sleep (redis 6.0 to 7.4), so what they lack of a
// core each is the time that they waited for a CPU.
func ioThreadsByInfo(n *facts.Node, t hosts.IOThreads) *Finding {
	active, _ := n.Series(series.IOThreadsActive).Max()
	all := n.PerSecond(series.UsedCPUUser) + n.PerSecond(series.UsedCPUSys)
	main := n.PerSecond(series.UsedCPUUserMainThread) + n.PerSecond(series.UsedCPUSysMainThread)
	q, ok := n.Queue()
	if active == 0 || main == 0 || all-main < degree.Part || all > degree.Most*float64(t.Configured) || !ok ||
		q.Share() < mostlyQueued {
		return nil
	}
	f := finding(n, n.UnexplainedWaits())
	f.weaken(1)
	f.loseOfCalls(n, q.Share(), q.WaitNs)
	f.support(recording.SourceServer, all, "cores", "%s active, and all threads together get %.1f cores: spinning "+
		"threads with enough CPUs would use %d", counted(t.Configured, "I/O thread"), all, t.Configured)
	f.doubt(recording.SourceServer, 0, "", "how many CPUs the server has was not seen")
	f.FixSteps = ioThreadsFix(n, t)
	return f
}

func ioThreadsFix(n *facts.Node, t hosts.IOThreads) []remedy.Step {
	fewer, cpus := "<fewer than the server has CPUs>", ""
	if t.CPUs > 0 {
		fewer, cpus = strconv.Itoa(max(1, int(t.CPUs)-1)), " (now "+format.Rounded(t.CPUs)+")"
	}
	return []remedy.Step{
		remedy.ConfigSet(n, "fewer-io-threads", "io-threads", fewer,
			"Fewer than CPUs: then no thread with work waits for one that spins"),
		orElse(change("more-cpus", "Give the server at least %d CPUs%s: by its server_cpulist, its cpuset, or a "+
			"larger CPU quota", t.Configured+1, cpus)),
	}
}
