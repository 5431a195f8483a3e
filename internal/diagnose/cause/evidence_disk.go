package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// supportBlocked says in which system calls the main thread was blocked.
func (f *Finding) supportBlocked(n *facts.Node, calls map[string]bool) {
	ns, stretches, longest := map[string]int64{}, map[string]int{}, map[string]int64{}
	if n.SeenExactly() {
		for _, s := range n.Exact(account.Blocked) {
			if calls[facts.SyscallOf(s)] {
				ns[s.Culprit] += s.Ns()
				stretches[s.Culprit]++
				longest[s.Culprit] = max(longest[s.Culprit], s.Ns())
			}
		}
		f.blockedIn(recording.SourceTap, ns, stretches, longest)
		return
	}
	for _, e := range n.Events(recording.SourceHost, recording.KindBlocked) {
		if d := recording.DetailOf[recording.ThreadDetail](e); calls[d.Syscall] {
			ns[d.Syscall] += int64(float64(e.DurationNs) * min(max(d.Share, 0), 1))
			stretches[d.Syscall]++
			longest[d.Syscall] = max(longest[d.Syscall], e.DurationNs)
		}
	}
	f.blockedIn(recording.SourceHost, ns, stretches, longest)
}

func (f *Finding) blockedIn(source string, ns map[string]int64, stretches map[string]int, longest map[string]int64) {
	for _, call := range facts.KeysByValue(ns) {
		f.support(source, fmt.Sprintf("the main thread was blocked in %s() %s, %s in all, up to %s at a time", call,
			facts.TimesText(stretches[call]), facts.Dur(ns[call]), facts.Dur(longest[call])),
			float64(ns[call]), "ns")
	}
}

// supportLatency says what LATENCY has of the events that begin with prefix.
func (f *Finding) supportLatency(n *facts.Node, events map[string]bool) {
	longest, count := map[string]int64{}, map[string]int{}
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		if d := recording.DetailOf[recording.LatencyDetail](e); events[d.Event] {
			longest[d.Event] = max(longest[d.Event], e.DurationNs)
			count[d.Event]++
		}
	}
	for _, event := range facts.KeysByValue(longest) {
		f.support(recording.SourceServer, fmt.Sprintf("LATENCY: %s up to %s, in %d different seconds", event,
			facts.Dur(longest[event]), count[event]), float64(longest[event]), "ns")
	}
}

func (f *Finding) supportAppended(n *facts.Node) {
	if grown := n.Growth("aof_current_size"); grown > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.2f MB were appended to the AOF in the watch", grown/1e6),
			grown, "bytes")
	}
}

// orUnknown is the value of a parameter, or that it is not known.
func orUnknown(value string) string {
	if value == "" {
		return "unknown (CONFIG GET is forbidden)"
	}
	return value
}
