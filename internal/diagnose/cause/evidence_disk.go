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

// supportBlocked says in which system calls the main thread was blocked.
func (f *Finding) supportBlocked(n *facts.Node, calls map[string]bool) {
	ns, stretches, longest := map[string]int64{}, map[string]int{}, map[string]int64{}
	if mainthread.SeenExactly(n) {
		for _, s := range mainthread.Exact(n, account.Blocked) {
			if calls[mainthread.SyscallOf(s)] {
				ns[s.Culprit] += s.Ns()
				stretches[s.Culprit]++
				longest[s.Culprit] = max(longest[s.Culprit], s.Ns())
			}
		}
		f.supportBlockedIn(recording.SourceTap, ns, stretches, longest)
		return
	}
	for _, e := range n.Events(recording.SourceHost, recording.KindBlocked) {
		if d := recording.DetailOf[recording.ThreadDetail](e); calls[d.Syscall] && d.Other == "" {
			ns[d.Syscall] += int64(float64(e.DurationNs) * min(max(d.Share, 0), 1))
			stretches[d.Syscall]++
			longest[d.Syscall] = max(longest[d.Syscall], e.DurationNs)
		}
	}
	f.supportBlockedIn(recording.SourceHost, ns, stretches, longest)
}

func (f *Finding) supportBlockedIn(source string, ns map[string]int64, stretches map[string]int,
	longest map[string]int64,
) {
	for _, call := range facts.KeysByValue(ns) {
		f.support(source, float64(ns[call]), "ns",
			"the main thread was blocked in %s %s, %s in all, up to %s at a time", call,
			facts.TimesText(stretches[call]),
			format.Brief(ns[call]), format.Brief(longest[call]))
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

func (f *Finding) supportAppended(n *facts.Node) {
	if grown := n.Growth(series.AOFCurrentSize); grown > 0 {
		f.support(recording.SourceServer, grown, "bytes",
			"%.2f MB were appended to the AOF during the watch", grown/1e6)
	}
}

// orUnknown is the value of a parameter, or that it is not known.
func orUnknown(value string) string {
	if value == "" {
		return "unknown (CONFIG GET is forbidden)"
	}
	return value
}
