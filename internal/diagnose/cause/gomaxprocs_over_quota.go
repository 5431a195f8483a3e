package cause

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// gomaxprocsOverQuota: the caller's runtime keeps more threads busy than its cgroup's quota has cores. Together they
// spend the quota early in each period, and all of them stand still for the rest of it. What is felt of
// it is client-cfs-throttled.
var gomaxprocsOverQuota = Cause{
	ID: "gomaxprocs-over-quota",
	Title: "The client's runtime runs more threads at once than its CPU quota has cores, spends the quota early and " +
		"then stands still",
	Layer: "client-host",
	Needs: Needs{
		T0: "nothing: the server's side is well",
		T1: "the number of threads, GOMAXPROCS or the version of Go that the program was built with, against the " +
			"quota of its cgroup (a hint)",
		T2: "calls whose reply was in the socket while more of the client's threads than the quota has cores were " +
			"throttled together",
	},
	Explain: explainMaxProcs,
}

// runtimeOfOf is what the host source read of a process's runtime.
type runtimeOf struct {
	Go         string `json:"go"`
	HeedsQuota bool   `json:"heeds_quota"`
	Why        string `json:"why"`
	Procs      int    `json:"procs"`
	ProcsBy    string `json:"procs_by"`
	JVM        bool   `json:"jvm"`
}

func runtimeOfOf(n *facts.Node, pid int) (r runtimeOf, ok bool) {
	s, ok := n.Rec.SnapshotOf(recording.SourceHost, fmt.Sprintf("%s%d", recording.ProcessPrefix, pid),
		recording.SnapshotRuntime)
	return r, ok && json.Unmarshal([]byte(s.Body), &r) == nil
}

// fitting is how many threads at once a quota is good for: so many Go 1.25 and later choose by themselves, which is the
// quota rounded up, and two at least (runtime, adjustCgroupGOMAXPROCS). With that many, throttling is a lack of quota.
func fitting(cores float64) float64 { return max(2, math.Ceil(cores)) }

// beside the threads that run goroutines a Go program has sysmon, and one or other that comes back from a system call
// and finds its place taken: with GOMAXPROCS 2 and a quota of 0.2 cores 2.2 threads were throttled together on average,
// with 16 and 0.5 cores 10.
const beside = 2

// together is how many threads of a process were throttled at once, on average while any was.
func together(t *facts.Threads) float64 {
	return float64(t.ThrottledNs) / float64(max(t.Throttled.TotalNs(), 1))
}

// overQuotaOf is a process whose runtime has more threads than its quota is good for.
type overQuota struct {
	pid     int
	cores   float64
	cgroup  string
	at      float64 // threads throttled at once
	runtime runtimeOf
	known   bool // the runtime is
}

// overQuotaOf judges a throttled process; false where nothing shows that its runtime, and not its work, is too wide for
// the quota.
func overQuotaOf(n *facts.Node, t *facts.Threads) (o overQuota, ok bool) {
	if t == nil || len(t.Throttled) == 0 {
		return o, false
	}
	q := t.MainQuota()
	o = overQuota{pid: t.PID, cores: q.Cores, cgroup: q.Cgroup, at: together(t)}
	if o.cores <= 0 {
		if o.cores, o.cgroup = quotaOf(n, t.PID); o.cores <= 0 {
			return o, false
		}
	}
	o.runtime, o.known = runtimeOfOf(n, t.PID)
	switch {
	case o.known && o.runtime.JVM:
		return o, o.at > fitting(o.cores)+beside && ownThreads(t) || float64(o.runtime.Procs) > fitting(o.cores)
	case o.known: // Go
		return o, o.at > fitting(o.cores)+beside || o.width(n) > fitting(o.cores)
	}
	return o, false // whose threads those are is not known: the application's are its own affair
}

// width is how many threads a Go program runs at once as far as its files tell; 0 where they do not.
func (o overQuota) width(n *facts.Node) float64 {
	if o.runtime.Procs > 0 {
		return float64(o.runtime.Procs)
	}
	if cpus, ok := n.Machine("cpu.count").Last(); ok && !o.runtime.HeedsQuota {
		return cpus
	}
	return 0
}

// quotaOf is the quota of a process's cgroup as its files have it.
func quotaOf(n *facts.Node, pid int) (cores float64, cgroup string) {
	path := n.CgroupOf(pid)
	quota, _ := n.Rec.Series(recording.SourceHost, recording.CgroupPrefix+path, "cpu.quota_us").Last()
	period, _ := n.Rec.Series(recording.SourceHost, recording.CgroupPrefix+path, "cpu.period_us").Last()
	if path == "" || quota <= 0 || period <= 0 {
		return 0, path
	}
	return quota / period, path
}

// runtimeThreads are the names of threads whose number a JVM chooses by the CPUs that it sees; those of the application
// are its own affair.
var runtimeThreads = []string{
	"GC Thread#", "G1 Conc#", "G1 Refine#", "ParGC", "C1 Compiler", "C2 Compiler",
	"ForkJoinPool", "ZWorker", "ShenandoahGC",
}

// ownThreads reports whether most of the throttled time was that of threads that the runtime made for itself.
func ownThreads(t *facts.Threads) bool {
	var own int64
	for comm, ns := range t.ThrottledByComm {
		if slices.ContainsFunc(runtimeThreads, func(p string) bool { return strings.HasPrefix(comm, p) }) {
			own += ns
		}
	}
	return 2*own > t.ThrottledNs
}

func explainMaxProcs(n *facts.Node) *Finding {
	l := n.LateReads(true, facts.ThrottledUnreadNs)
	if l == nil {
		return nil
	}
	all := n.ProcessThreads()
	o, ok := overQuotaOf(n, all[l.PIDs[0]])
	if !ok {
		return nil
	}
	f := finding(n, l.Claim, 0.93)
	c := f.lateCalls(n, l, "while its cgroup was throttled")
	t := all[c.PID]
	f.support(recording.SourceTap, fmt.Sprintf("its quota is %.2f cores (%s), and when it was spent %.1f of its "+
		"threads wanted to run, on average of %d times", o.cores, o.cgroup, o.at, len(t.Throttled)), o.at, "threads")
	f.supportRuntime(n, o)
	f.clientQuota(n, o.cgroup)
	if run := n.ProcessSeries(c.PID, "cpu_ns"); len(run) >= 2 {
		count, _ := n.ProcessSeries(c.PID, "threads").Max()
		f.support(recording.SourceHost, fmt.Sprintf("it used %.2f cores with %.0f threads", facts.Rate(run)/1e9, count),
			facts.Rate(run)/1e9, "cores")
	}
	if o.cores < 1 {
		f.Confidence -= 0.05
		f.doubt(recording.SourceTap, fmt.Sprintf("with %.2f cores a single thread would be throttled, too, where it "+
			"has more work than that: fewer threads spread the stops, more quota ends them", o.cores), o.cores, "cores")
	}
	f.Fix = maxProcsFix(o)
	f.See = []string{
		"https://go.dev/doc/go1.25#container-aware-gomaxprocs",
		"https://github.com/golang/go/issues/33803", "https://github.com/uber-go/automaxprocs",
	}
	return f
}

func (f *Finding) supportRuntime(n *facts.Node, o overQuota) {
	switch w := o.width(n); {
	case !o.known:
	case o.runtime.Procs > 0:
		f.support(recording.SourceHost, fmt.Sprintf("%s is %d in its environment or options", o.runtime.ProcsBy,
			o.runtime.Procs), float64(o.runtime.Procs), "threads")
	case o.runtime.Go != "" && !o.runtime.HeedsQuota:
		f.support(recording.SourceHost, fmt.Sprintf("it was built with %s, which takes a thread for each CPU of the "+
			"host, %.0f, whatever the quota (%s)", o.runtime.Go, w, o.runtime.Why), w, "threads")
	case o.runtime.Go != "":
		f.support(recording.SourceHost, fmt.Sprintf("it was built with %s, which would heed the quota: the program "+
			"sets GOMAXPROCS itself", o.runtime.Go), 0, "")
	}
}

func maxProcsFix(o overQuota) []string {
	procs := max(1, int(o.cores))
	if o.runtime.JVM {
		return []string{
			fmt.Sprintf("-XX:ActiveProcessorCount=%d (and without -XX:-UseContainerSupport), or "+
				"-XX:ParallelGCThreads and -XX:ConcGCThreads", procs),
			"or remove the limit (resources.limits.cpu in Kubernetes), and keep requests.cpu",
		}
	}
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d in its environment, and no runtime.GOMAXPROCS(…) in the program", procs),
		"or build it with Go 1.25 or later and `go 1.25` in go.mod, which follow the quota by themselves; before " +
			"that: import _ \"go.uber.org/automaxprocs\"",
		"or remove the limit (resources.limits.cpu in Kubernetes), and keep requests.cpu",
		"go-redis makes its pool by it, too: PoolSize is 10 x GOMAXPROCS where it is not set (5 x per node in a " +
			"cluster)",
		".NET: DOTNET_PROCESSOR_COUNT; others: the size of their worker pools",
	}
}
