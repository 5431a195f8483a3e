package cause

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// serverCFSThrottled: the server's cgroup has used up its CPU quota, and the kernel does not run it until the next
// period (kernel/sched/fair.c, throttle_cfs_rq).
var serverCFSThrottled = Cause{
	ID:      "server-cfs-throttled",
	Class:   ServerStall,
	Changes: []string{"cpu quota", "call rate"},
	Explain: explainThrottled,
}

func explainThrottled(n *facts.Node) *Finding {
	cl := n.InState(account.Throttled)
	if cl.Ns == 0 {
		return nil
	}
	f := finding(n, cl)
	f.support(mainthread.StateSource(n), float64(cl.Calls), "calls", "%s waited while the server was throttled, up to "+
		"%s in one call", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	if w := mainthread.SumWaits(mainthread.Exact(n, account.Throttled)); w.Count > 0 {
		f.support(recording.SourceTap, float64(w.Ns), "ns", "the quota kept the main thread off the CPU %s, %s in "+
			"all, up to %s at a time", facts.TimesText(w.Count), format.Brief(w.Ns), format.Brief(w.MaxNs))
	}
	levels := hosts.Throttling(n)
	for _, q := range levels {
		f.supportQuota(n, q)
	}
	if len(levels) > 0 {
		f.Title = throttleTitle(n, levels[0], f.Title)
	}
	if len(n.Events(recording.SourceServer, recording.KindSlowlog)) == 0 {
		f.support(recording.SourceServer, 0, "entries", "SLOWLOG shows no command that could have held up others")
	}
	f.supportAlone(n)
	f.FixSteps = throttleFix(n, levels)
	return f
}

// throttleTitle says which kind of throttling it was, and whether the quota is that of the server's own cgroup.
func throttleTitle(n *facts.Node, q hosts.QuotaUse, tooSmall string) string {
	whose := "the server's cgroup"
	if above(n, q) {
		whose = "a cgroup above the server's"
	}
	switch {
	case q.Below:
		return "The kernel stops " + whose + " below its CPU quota, until the next period"
	case q.Bursts():
		return "Short bursts use up the CPU quota of " + whose + ": the kernel stops it until the next period"
	case above(n, q):
		return "A cgroup above the server's has too little CPU quota: the kernel stops it until the next period"
	}
	return tooSmall
}

// above reports whether a level is known to be above the server's own cgroup.
func above(n *facts.Node, q hosts.QuotaUse) bool {
	return hosts.CgroupOf(n).CPUPath != "" && q.Path != "" && q.Path != hosts.CgroupOf(n).CPUPath
}

// supportQuota is what cpu.stat of one level says, and whether its quota was used up.
func (f *Finding) supportQuota(n *facts.Node, q hosts.QuotaUse) {
	f.support(recording.SourceHost, q.Throttled, "periods", "cpu.stat of %s: throttled in %.0f of %.0f periods, %s in "+
		"all", q.Path, q.Throttled, q.Periods, format.Brief(int64(q.ThrottledNs)))
	if q.QuotaNs == 0 {
		return
	}
	where := "its quota"
	if above(n, q) {
		where = fmt.Sprintf("the quota of %s, above the server's own cgroup,", q.Path)
	}
	f.support(recording.SourceHost, q.QuotaNs/q.PeriodNs, "cores", "%s is %.2f cores (%.0f µs of every %.0f µs)", where,
		q.QuotaNs/q.PeriodNs, q.QuotaNs/1e3, q.PeriodNs/1e3)
	if q.Others > 0 {
		f.support(recording.SourceHost, q.Others, "of its use",
			"other processes below %s used %.0f %% of its CPU time", q.Path, q.Others*100)
	}
	f.supportUse(n, q)
}

// supportUse tells a quota that is too small from one that bursts reach, and from throttling below the quota.
func (f *Finding) supportUse(n *facts.Node, q hosts.QuotaUse) {
	switch {
	case q.Below:
		f.support(recording.SourceHost, q.UsedNs/(q.Throttled*q.QuotaNs), "of the quota",
			"it was throttled below the quota: it used %s, and the %.0f throttled periods alone allow %s%s",
			format.Brief(int64(q.UsedNs)), q.Throttled, format.Brief(int64(q.Throttled*q.QuotaNs)), belowWhy(n))
		f.doubt(recording.SourceHost, 0, "",
			"periods in which a virtual machine stands still count as throttled, too, and give no quota")
	case q.Bursts():
		f.support(recording.SourceHost, q.Share, "of the quota", "short bursts reach the quota: in the seconds in "+
			"which it was throttled, it used %.0f %% of it; it stood still while %s of CPU time per second were left "+
			"unused", q.Share*100, format.Brief(int64(q.Spare*q.QuotaNs)))
	case q.Seconds > 0:
		what := ""
		if q.TooSmall() {
			what = "the quota is too small: "
		}
		f.support(recording.SourceHost, q.Share, "of the quota", what+"in the seconds in which it was throttled, it "+
			"used %.0f %% of the quota, and was throttled in %.0f %% of the periods", q.Share*100, min(q.Often, 1)*100)
	}
}

// belowWhy says what makes this kernel throttle below the quota.
func belowWhy(n *facts.Node) string {
	switch {
	case hosts.KernelBefore(n, 4, 18):
		return fmt.Sprintf(". Linux %s: before 4.18 the kernel takes quota back from CPUs whose clocks differ, unless "+
			"its distribution has repaired that (commit 512ac999d275)", hosts.CgroupOf(n).Kernel)
	case hosts.KernelBefore(n, 5, 4):
		return fmt.Sprintf(". Linux %s: before 5.4 quota that one CPU has taken and not used is lost at the end of a "+
			"period, unless its distribution has repaired that (commit de53fd7aedb1)", hosts.CgroupOf(n).Kernel)
	case hosts.CgroupOf(n).Kernel != "":
		return fmt.Sprintf(". Linux %s has none of the known faults: other CPUs may have held the quota, of which "+
			"each takes %s at once", hosts.CgroupOf(n).Kernel, format.Brief(int64(hosts.SliceNs(n))))
	}
	return ""
}

// throttleFix gives the commands for where the limit was set, and for why it was reached.
func throttleFix(n *facts.Node, levels []hosts.QuotaUse) []remedy.Step {
	var q hosts.QuotaUse
	if len(levels) > 0 {
		q = levels[0]
	}
	cores := 1.0
	if c, _, ok := mainthread.MainCores(n); ok {
		cores = max(cores, math.Ceil(c)+1)
	}
	if q.PeriodNs > 0 && above(n, q) { // others use it, too
		cores = max(cores, math.Ceil(q.QuotaNs/q.PeriodNs)+1)
	}
	var fix []remedy.Step
	if raise, ok := raiseQuota(n, q, cores); ok {
		fix = append(fix, raise)
	}
	switch {
	case q.Below:
		return append(belowFix(n), fix...)
	case q.Bursts():
		return append(fix, burstFix(n, q)...)
	}
	last := "If a limit must stay: main thread, io-threads, background threads and the fork child of BGSAVE share " +
		"it; give it at least 2 cores more than io-threads"
	if q.UsedUp() {
		last += ". Bursts (cpu.max.burst) do not help: on average it uses the whole quota"
	} else {
		last += ", and allow bursts (cpu.cfs_burst_us, cpu.max.burst)"
	}
	return append(fix, orElse(change("room-for-all-threads", "%s", last)))
}

// workload is what a pod was made by, for kubectl. Only the name of a pod of a Deployment tells.
func workload(c hosts.Cgroup) string {
	name := "statefulset/<name of the workload>"
	if c.Deployment != "" {
		name = format.Shell("deployment/" + c.Deployment)
	}
	if c.PodNamespace == "" {
		return name
	}
	return "-n " + format.Shell(c.PodNamespace) + " " + name
}

// raiseQuota removes or raises the limit where it was set: for a pod, a container, a systemd unit, or a bare cgroup.
// Each tool has a step of its own: the lab proves that of a bare cgroup alone.
func raiseQuota(n *facts.Node, q hosts.QuotaUse, cores float64) (remedy.Step, bool) {
	c := hosts.CgroupOf(n)
	own := !above(n, q)
	unit := unitOf(q.Path)
	if q.Path == "" {
		unit = c.Unit
	}
	s := remedy.Step{
		ID: "remove-cpu-limit", Kind: remedy.Command, Text: "Remove the CPU limit of " + whoseLimit(n, q),
		Risk: "without a limit it may take CPU time from its neighbours",
	}
	switch {
	case c.Pod != "" && (own || isPod(q.Path, c.Pod)):
		container := format.Shell(cmp.Or(c.ContainerName, "redis"))
		s.ID = stepPodLimit
		if !own {
			container = "<one of the pod's containers>"
		}
		s.Text = fmt.Sprintf("Remove resources.limits.cpu of the container (keep requests.cpu) in the workload of "+
			"%s, or set it to at least %.0f", format.Name(c.PodText()), cores+1)
		if !own {
			s.Text = fmt.Sprintf("The limit is that of the whole %s, which its containers share. Remove "+
				"resources.limits.cpu of one of them: then the pod has none. Or set them to at least %.0f together",
				format.Name(c.PodText()), cores+1)
		}
		s.Command = "kubectl set resources " + workload(c) + " -c " + container + " --limits=cpu=0"
		s.Restart = "the pod"
	case own && strings.Contains(q.Path, "docker") && c.Container != "":
		s.ID = stepContainerLimit
		s.Text = fmt.Sprintf("Raise the CPU limit of the container to %.0f. Where it was started with --cpu-quota: "+
			"--cpu-quota=-1", cores+1)
		container := format.Shell(fmt.Sprintf("%.12s", c.Container))
		s.Command = fmt.Sprintf("docker update --cpus=%.0f %s", cores+1, container)
		if q.QuotaNs > 0 && q.PeriodNs > 0 {
			s.Undo = fmt.Sprintf("docker update --cpus=%.2f %s", q.QuotaNs/q.PeriodNs, container)
		}
	case unit != "":
		s.ID = stepUnitLimit
		s.Text = fmt.Sprintf("Remove the CPU limit of %s, or set at least %.0f %%", format.Name(unit), (cores+1)*100)
		s.Command, s.Undo = unitWithoutQuota(unit, q.QuotaNs, q.PeriodNs)
	case q.Path == "":
		return remedy.Step{}, false
	default:
		s.Command, s.Undo = cgroupWithoutQuota(c.Version, q.Path, q.QuotaNs/1e3, q.PeriodNs/1e3)
	}
	return s, true
}

// whoseLimit names the cgroup of a quota.
func whoseLimit(n *facts.Node, q hosts.QuotaUse) string {
	if above(n, q) {
		return "cgroup " + format.Name(q.Path) + ", above the server's own"
	}
	return "the server's cgroup"
}

// isPod reports whether a cgroup is that of a pod as a whole. The systemd driver writes the dashes of its uid as
// underscores.
func isPod(cgroup, uid string) bool {
	return strings.Contains(strings.ReplaceAll(path.Base(cgroup), "_", "-"), uid)
}

// burstFix is what helps where the quota is reached in short bursts only.
func burstFix(n *facts.Node, q hosts.QuotaUse) []remedy.Step {
	file := "/sys/fs/cgroup/cpu" + q.Path + "/cpu.cfs_burst_us"
	if hosts.CgroupOf(n).Version == 2 {
		file = "/sys/fs/cgroup" + q.Path + "/cpu.max.burst"
	}
	save := remedy.Step{
		ID: "allow-bursts", Kind: remedy.Command, Or: true,
		Text:    "Let it save up unused quota for bursts, up to one more quota",
		Command: fmt.Sprintf("echo %.0f > %s", q.QuotaNs/1e3, format.Shell(file)),
		Since:   "Linux 5.14",
	}
	if hosts.KernelBefore(n, 5, 14) {
		save.Kind, save.Command = remedy.Change, ""
		save.Text = "Upgrade to Linux 5.14 or later, which can save up unused quota for bursts (cpu.max.burst)"
		save.Restart = "the host"
	}
	return []remedy.Step{save, {
		ID: "longer-period", Kind: remedy.Change, Or: true,
		Text: "A longer period with as many cores (systemd: CPUQuotaPeriodSec=1s; docker: --cpu-period and " +
			"--cpu-quota; kubelet: --cpu-cfs-quota-period)",
		Risk: "only longer bursts are throttled, but for longer",
	}}
}

// belowFix is what helps where the kernel throttles below the quota; the limit's removal comes after it.
func belowFix(n *facts.Node) []remedy.Step {
	switch {
	case hosts.KernelBefore(n, 5, 4):
		return []remedy.Step{{
			ID: "upgrade-kernel", Kind: remedy.Change, Restart: "the host",
			Text: "Upgrade the kernel of this host: Linux 5.4 or later, or one of the distribution that has the " +
				"commits 512ac999d275 and de53fd7aedb1. A higher limit helps little on this kernel: until then " +
				"remove it",
		}}
	case hosts.CgroupOf(n).Kernel != "":
		return []remedy.Step{
			change("fewer-cpus-share-quota", "Let fewer CPUs share the quota: a cpuset with as many CPUs as the quota "+
				"has cores (kubelet: --cpu-manager-policy=static), or smaller slices (sysctl "+
				"kernel.sched_cfs_bandwidth_slice_us). Or remove the limit"),
		}
	}
	return nil
}
