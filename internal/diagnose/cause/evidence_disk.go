package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// maybeOnDisk reports whether the server may have waited for the disk: it was seen blocked there, or nothing else is
// known of the wait.
func maybeOnDisk(_ account.Account, s account.Segment) bool {
	if facts.IsUnexplainedWait(s) && s.State != account.Busy {
		return true
	}
	return s.Actor == account.Server && s.State == account.Blocked && mainthread.DiskSyscalls[mainthread.SyscallOf(s)]
}

// diskFinding starts the finding of a cause by which the main thread waits for the disk with its append-only file.
func diskFinding(n *facts.Node, cl facts.Claim, fsync string, events map[string]bool) *Finding {
	f := finding(n, cl)
	if fsync == "" {
		fsync = "unknown (CONFIG GET is forbidden)"
	}
	f.support(recording.SourceServer, 1, "", "appendonly yes, appendfsync %s", fsync)
	f.supportBlocked(n)
	f.supportLatency(n, events)
	f.supportWaiting(n, cl)
	if grown := n.Growth(series.AOFCurrentSize); grown > 0 {
		f.support(recording.SourceServer, grown, "bytes",
			"%.2f MB were appended to the AOF during the watch", grown/1e6)
	}
	return f
}

// supportBlocked says in which system calls of the disk the main thread was blocked.
func (f *Finding) supportBlocked(n *facts.Node) {
	ns, stretches, longest := map[string]int64{}, map[string]int{}, map[string]int64{}
	add := func(call string, all, atOnce int64) {
		ns[call] += all
		stretches[call]++
		longest[call] = max(longest[call], atOnce)
	}
	source := recording.SourceHost
	if mainthread.SeenExactly(n) {
		source = recording.SourceTap
		for _, s := range mainthread.Exact(n, account.Blocked) {
			if mainthread.DiskSyscalls[mainthread.SyscallOf(s)] {
				add(s.Culprit, s.Ns(), s.Ns())
			}
		}
	} else {
		for _, e := range n.Events(recording.SourceHost, recording.KindBlocked) {
			d := recording.DetailOf[recording.ThreadDetail](e)
			if mainthread.DiskSyscalls[d.Syscall] && d.Other == "" {
				add(d.Syscall, int64(float64(e.DurationNs)*min(max(d.Share, 0), 1)), e.DurationNs)
			}
		}
	}
	for _, call := range facts.KeysByValue(ns) {
		f.support(source, float64(ns[call]), "ns",
			"the main thread was blocked in %s %s, %s in all, up to %s at a time", call,
			facts.TimesText(stretches[call]), format.Brief(ns[call]), format.Brief(longest[call]))
	}
}

// supportLatency says what LATENCY reports of the events.
func (f *Finding) supportLatency(n *facts.Node, events map[string]bool) {
	longest, count := map[string]int64{}, map[string]int{}
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		if d := recording.DetailOf[recording.LatencyDetail](e); events[d.Event] {
			longest[d.Event] = max(longest[d.Event], e.DurationNs)
			count[d.Event]++
		}
	}
	for _, event := range facts.KeysByValue(longest) {
		f.support(recording.SourceServer, float64(longest[event]), "ns",
			"LATENCY: %s up to %s, in %d different seconds", event, format.Brief(longest[event]), count[event])
	}
}
