package cause

import (
	"fmt"
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

// swapped: part of the data is in swap, not in memory, and the main thread waits for the disk when a command touches
// it.
var swapped = Cause{
	ID:      "swap",
	Class:   ServerStall,
	Changes: []string{"maxmemory", "memory limit"},
	Explain: explainSwap,
}

// isFault: the server waits for memory. A missing page is fetched during whatever a thread does: its own code, or a
// system call that never sleeps by itself and copies from or to the page. Waits that are too short to be reported have
// no name.
func isFault(s account.Segment) bool {
	if s.Actor != account.Server || s.State != account.Blocked || s.Suspect >= 0 {
		return false
	}
	return s.Culprit == mainthread.PageFault || s.Culprit == "" || s.Culprit == "read" || s.Culprit == "epoll_wait"
}

func explainSwap(n *facts.Node) *Finding {
	faults := n.Growth(series.MainMajorFaults)
	inSwap, _ := n.Series(series.ProcessSwap).Max()
	smaps, _ := n.Series(series.ProcessSmapsSwap).Max()
	inSwap = max(inSwap, smaps)
	if faults == 0 || inSwap == 0 {
		return nil // faults without swap are pages of files
	}
	// Fetching a page and making room for it is work as well, which all other calls wait for.
	work := hosts.ExcessKernelShare(n)
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			switch {
			case isFault(s):
				times.Add(s, s.Ns())
			case s.Actor == account.Server && (s.State == account.Busy || s.State == account.Exec):
				times.Add(s, int64(work*float64(s.Ns())))
			}
		}
		return times
	})
	blocked := n.Claim(func(_ account.Account, s account.Segment) bool { return isFault(s) })
	if !cl.Matters() || blocked.Ns == 0 && work < degree.Most {
		return nil
	}
	f := finding(n, cl)
	f.support(recording.SourceHost, inSwap, "bytes", "%.1f MB of the server are in swap, %.1f MB in memory", inSwap/1e6,
		facts.LastValue(n.Series(series.ProcessRSS))/1e6)
	f.support(recording.SourceHost, faults, "faults", "the main thread waited for %s to be read (major faults), %.0f "+
		"per second", counted(faults, "page"), faults/n.Seconds())
	if blocked.Calls > 0 {
		f.support(recording.SourceTap, float64(blocked.Calls), "calls", "%s waited while it was blocked in page "+
			"faults, up to %s in one call", ofSlow(blocked.Calls, n), format.Brief(blocked.MaxNs))
	}
	if work > 0 {
		f.support(recording.SourceServer, work, "of its CPU time", "%.0f %% of the main thread's CPU time went to the "+
			"kernel, beyond its sockets and forks: it fetches pages and makes room for them", work*100)
	}
	used, rss := facts.LastValue(n.Series(series.UsedMemory)), facts.LastValue(n.Series(series.UsedMemoryRSS))
	if used > 0 && rss > 0 && rss < used {
		f.support(recording.SourceServer, rss, "bytes",
			"INFO: used_memory %.1f MB, resident only %.1f MB", used/1e6, rss/1e6)
	}
	f.FixSteps = swapFix(n, memoryLimit(n, f))
	return f
}

// memoryLimit finds the cgroup with the limit that pushed the server out, if one is nearly full, and says so.
func memoryLimit(n *facts.Node, f *Finding) (path string) {
	for _, subject := range n.Rec.Subjects(recording.SourceHost, recording.CgroupPrefix) {
		cgroup := strings.TrimPrefix(subject, recording.CgroupPrefix)
		last := func(of series.Name) float64 { return facts.LastValue(n.CgroupSeries(cgroup, of)) }
		limit, usage := last(series.CgroupMemoryLimit), last(series.CgroupMemory)
		if high := last(series.CgroupMemoryHigh); high > 0 && (limit <= 0 || high < limit) {
			limit = high
		}
		if limit <= 0 || usage < degree.NearlyAll*limit {
			continue
		}
		path = cgroup
		f.support(recording.SourceHost, usage, "bytes", "its cgroup %s is full: %.1f of %.1f MB, hit %s", path,
			usage/1e6, limit/1e6, facts.TimesText(int(n.CgroupSeries(path, series.CgroupMemoryFails).Growth())))
	}
	return path
}

// swapFix makes room first: what is in swap does not come back without it.
func swapFix(n *facts.Node, limit string) (fix []remedy.Step) {
	if raise, ok := raiseMemoryLimit(n, limit); ok {
		fix = append(fix, raise)
	} else {
		fix = append(fix, remedy.Step{
			ID: "more-memory", Kind: remedy.Change,
			Text: "Give the host more memory, or move other processes off it; then read what is in swap back: " +
				"swapoff -a && swapon -a, or restart the server",
			Risk: "swapoff takes as long as reading it all, and needs room for it",
		})
	}
	if most, ok := n.Config("maxmemory"); ok && most == "0" {
		fix = append(fix, remedy.ConfigSet(n, "limit-data", "maxmemory", "<what fits with room for snapshots>",
			"Limit the data to what fits in memory, with a maxmemory-policy"))
		fix[len(fix)-1].Risk = "by maxmemory-policy keys are evicted, or writes refused"
	}
	return append(fix, remedy.Step{
		ID: "no-swap", Kind: remedy.Change,
		Text: "Once it fits, keep the server out of swap: memory.swap.max 0 for its cgroup (v2), MemorySwapMax=0 of " +
			"its unit, or vm.swappiness 0 or 1",
		Risk: "without swap the kernel kills a process where memory runs out",
	})
}

// raiseMemoryLimit raises the limit of a cgroup to what the server has in memory and in swap, and half as much again
// for buffers and snapshots, and reads its memory once, which brings it back from swap.
func raiseMemoryLimit(n *facts.Node, limit string) (remedy.Step, bool) {
	swapped := facts.LastValue(n.Series(series.ProcessSwap))
	need := facts.LastValue(n.Series(series.ProcessRSS)) + max(swapped,
		facts.LastValue(n.Series(series.ProcessSmapsSwap)))
	need += need / 2
	now, pid := facts.LastValue(n.CgroupSeries(limit, series.CgroupMemoryLimit)), hosts.ServerPID(n)
	if limit == "" || pid == 0 || hosts.CgroupOf(n).Version == 0 || need <= now {
		return remedy.Step{}, false
	}
	file := "/sys/fs/cgroup/memory" + limit + "/memory.limit_in_bytes"
	if hosts.CgroupOf(n).Version == 2 {
		file = "/sys/fs/cgroup" + limit + "/memory.max"
		high := facts.LastValue(n.CgroupSeries(limit, series.CgroupMemoryHigh))
		if high > 0 && (now <= 0 || high < now) {
			file = "/sys/fs/cgroup" + limit + "/memory.high"
		}
	}
	return remedy.Step{
		ID: "raise-memory-limit", Kind: remedy.Command,
		Text: fmt.Sprintf("Raise the memory limit of cgroup %s to %.0f MB, and read the server's memory once: that "+
			"brings it back from swap", format.Name(limit), need/1e6),
		Command: fmt.Sprintf("echo %.0f > %s && grep ' rw' /proc/%d/maps | while IFS='- ' read -r a b c; do dd "+
			"if=/proc/%d/mem of=/dev/null bs=1M iflag=skip_bytes,count_bytes skip=$((0x$a)) count=$((0x$b-0x$a)); "+
			"done 2> /dev/null", need, format.Shell(file), pid, pid),
		Risk: "the host needs that much memory; while it is read the server waits for the disk as now. " +
			"The kernel refuses a lower limit again while more is in use",
	}, true
}
