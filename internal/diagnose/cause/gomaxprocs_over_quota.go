package cause

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// gomaxprocsOverQuota: the caller's runtime keeps more threads busy than its cgroup's quota has cores. Together they
// spend the quota early in each period, and all of them are throttled for the rest of it. The visible effect is
// client-cfs-throttled.
var gomaxprocsOverQuota = Cause{
	ID:      "gomaxprocs-over-quota",
	Explain: explainMaxProcs,
}

// runtimeInfo is what the host source read of a process's runtime.
type runtimeInfo struct {
	Go         string `json:"go"`
	HeedsQuota bool   `json:"heeds_quota"`
	Why        string `json:"why"`
	Procs      int    `json:"procs"`
	ProcsBy    string `json:"procs_by"`
	JVM        bool   `json:"jvm"`
}

func runtimeInfoOf(n *facts.Node, pid int) (r runtimeInfo, ok bool) {
	s, ok := n.Rec.SnapshotOf(recording.SourceHost, fmt.Sprintf("%s%d", recording.ProcessPrefix, pid),
		recording.SnapshotRuntime)
	return r, ok && json.Unmarshal([]byte(s.Body), &r) == nil && (r.Go != "" || r.JVM)
}

// leastGoThreads is what Go 1.25 and later choose for the smallest quota; else the quota rounded up.
// Bound: library, adjustCgroupGOMAXPROCS of the Go runtime (1.25).
const leastGoThreads = 2

// extraThreads: besides the threads that run goroutines, a Go program has sysmon, and a thread or two that return from
// a system call and find their place taken. With GOMAXPROCS 2 and a quota of 0.2 cores 2.2 threads were throttled
// together on average, with 16 and 0.5 cores 10.
// Bound: noted, with GOMAXPROCS 2 and 16.
const extraThreads = 2

// overQuota is a process with a runtime that has more threads than fit its quota.
type overQuota struct {
	cores   float64
	cgroup  string
	at      float64 // threads throttled at once
	runtime runtimeInfo
	known   bool // the runtime is known
}

// overQuotaOf judges a throttled process; false where nothing shows that its runtime, and not its work, exceeds the
// quota.
func overQuotaOf(n *facts.Node, t *hosts.Threads) (o overQuota, ok bool) {
	if t == nil || len(t.Throttled) == 0 {
		return o, false
	}
	q := t.MainQuota()
	o = overQuota{cores: q.Cores, cgroup: q.Cgroup, at: float64(t.ThrottledNs) / float64(max(t.Throttled.TotalNs(), 1))}
	if o.cores <= 0 { // the tap did not see whose it is
		o.cgroup = hosts.CgroupPath(n.Case, t.PID)
		quota, period, ok := quotaOf(n, o.cgroup)
		if !ok {
			return o, false
		}
		o.cores = quota / period
	}
	o.runtime, o.known = runtimeInfoOf(n, t.PID)
	fit := max(leastGoThreads, math.Ceil(o.cores)) // with that many, throttling means a lack of quota
	switch many := o.at > fit+extraThreads; {
	case !o.known:
		return o, false // those of the application are its own business
	case o.runtime.JVM:
		return o, many && ownThreads(t) || float64(o.runtime.Procs) > fit
	default: // Go
		return o, many || o.width(n) > fit
	}
}

// width is how many threads a Go program runs at once according to its files; 0 where they do not say.
func (o overQuota) width(n *facts.Node) float64 {
	if o.runtime.Procs > 0 {
		return float64(o.runtime.Procs)
	}
	if cpus, ok := n.Series(series.MachineCPUs).Last(); ok && !o.runtime.HeedsQuota {
		return cpus
	}
	return 0
}

// runtimeThreads are the names of threads that a JVM creates in proportion to the CPUs that it sees; those of the
// application are its own business.
var runtimeThreads = []string{
	"GC Thread#", "G1 Conc#", "G1 Refine#", "ParGC", "C1 Compiler", "C2 Compiler",
	"ForkJoinPool", "ZWorker", "ShenandoahGC",
}

// ownThreads reports whether most of the throttled time was that of threads that the runtime created for itself.
func ownThreads(t *hosts.Threads) bool {
	var own int64
	for comm, ns := range t.ThrottledByComm {
		if slices.ContainsFunc(runtimeThreads, func(p string) bool { return strings.HasPrefix(comm, p) }) {
			own += ns
		}
	}
	return 2*own > t.ThrottledNs
}

func explainMaxProcs(n *facts.Node) *Finding {
	l := caller.LateReadsOf(n, true, caller.ThrottledUnreadNs)
	if l == nil {
		return nil
	}
	all := hosts.ProcessThreads(n.Case)
	o, ok := overQuotaOf(n, all[l.PIDs[0]])
	if !ok {
		return nil
	}
	f := finding(n, l.Claim)
	f.loseUnsent(n, l)
	c := f.supportLateCalls(n, l, "while its cgroup was throttled")
	t := all[c.PID]
	f.support(recording.SourceTap, o.at, "threads",
		"its quota is %.2f cores (%s); when it was spent, %.1f of its threads wanted to run (average of %d times)",
		o.cores, o.cgroup, o.at, len(t.Throttled))
	f.supportRuntime(n, o)
	f.supportClientQuota(n, o.cgroup)
	f.supportCores(n, c.PID)
	if o.cores < 1 {
		f.doubt(recording.SourceTap, o.cores, "cores",
			"with %.2f cores even a single thread would be throttled if it has more work than that: fewer "+
				"threads spread the stops, more quota ends them", o.cores)
	}
	f.FixSteps = maxProcsFix(n, o, c.Name)
	return f
}

func (f *Finding) supportRuntime(n *facts.Node, o overQuota) {
	switch w := o.width(n); {
	case !o.known:
	case o.runtime.Procs > 0:
		f.support(recording.SourceHost, float64(o.runtime.Procs), "threads",
			"%s is %d in its environment or options", o.runtime.ProcsBy, o.runtime.Procs)
	case o.runtime.Go != "" && !o.runtime.HeedsQuota:
		f.support(recording.SourceHost, w, "threads",
			"it was built with %s, which uses one thread per CPU of the host, %.0f, whatever the quota (%s)",
			o.runtime.Go, w, o.runtime.Why)
	case o.runtime.Go != "":
		f.support(recording.SourceHost, 0, "",
			"it was built with %s, which would respect the quota: the program sets GOMAXPROCS itself", o.runtime.Go)
	}
}

// maxProcsFix lets the runtime use as many threads as the quota has cores. With less than a core even one thread can
// spend it: then the limit goes first.
func maxProcsFix(n *facts.Node, o overQuota, who string) []remedy.Step {
	fewer := remedy.Step{
		ID: "threads-fit-quota", Kind: remedy.Setting, Library: "Go", Option: "GOMAXPROCS",
		To: strconv.Itoa(max(1, int(o.cores))), Where: "the environment of " + format.Name(who),
		Restart: "the application",
		Text: "Without runtime.GOMAXPROCS(…) in the program. Go 1.25 and later, with `go 1.25` in go.mod, follow the " +
			"quota by themselves; before that go.uber.org/automaxprocs does",
		Risk: "go-redis sizes its pool by it: PoolSize is 10 times GOMAXPROCS where it is not set",
	}
	if o.runtime.JVM {
		fewer.Library, fewer.Option, fewer.Risk = "JVM", "-XX:ActiveProcessorCount", ""
		fewer.Where = "the options of " + format.Name(who)
		fewer.Text = "And without -XX:-UseContainerSupport; or -XX:ParallelGCThreads and -XX:ConcGCThreads"
	}
	if o.runtime.Procs > 0 {
		fewer.From = strconv.Itoa(o.runtime.Procs)
	}
	limit := clientQuotaStep(n, o.cgroup, who)
	if o.cores < 1 {
		fewer.Or = true
		return []remedy.Step{limit, fewer}
	}
	limit.Or = true
	return []remedy.Step{fewer, limit}
}
