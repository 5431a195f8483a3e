package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// aof is how the server keeps its append-only file.
type aof struct {
	on    bool
	fsync string // always, everysec, no; empty where CONFIG is forbidden
}

func (n *Node) aof() aof {
	var a aof
	if v, ok := n.Info("aof_enabled").Max(); ok {
		a.on = v == 1
	}
	if v, ok := n.Config("appendonly"); ok && v == "yes" {
		a.on = true
	}
	a.fsync, _ = n.Config("appendfsync")
	return a
}

// diskCalls are the system calls by which the main thread waits for the disk under an append-only file.
var diskCalls = words("write pwrite64 writev pwritev fsync fdatasync sync_file_range ftruncate fallocate rename " +
	"renameat renameat2 unlink unlinkat openat open close lseek")

// onDisk claims the time that slow calls waited while the main thread was blocked on the disk, seen by the host or told
// by LATENCY.
func (n *Node) onDisk(match func(account.Segment) bool) Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool {
		if s.Suspect >= 0 && n.Ledger.Suspects[s.Suspect].Kind == account.KindAOF {
			return true
		}
		return s.Actor == account.Server && s.State == account.Blocked && s.Suspect < 0 && match(s)
	})
}

// diskCall reports whether a blocked segment is in one of the calls.
func diskCall(calls map[string]bool) func(account.Segment) bool {
	return func(s account.Segment) bool { return calls[callOf(s)] }
}

// callOf is the system call of a blocked segment, whose culprit may go on with the file: "fdatasync of appendonly.aof
// on vda".
func callOf(s account.Segment) string {
	call, _, _ := strings.Cut(s.Culprit, " of ")
	return call
}

// supportBlocked says in which system calls the main thread was blocked.
func (f *Finding) supportBlocked(n *Node, calls map[string]bool) {
	ns, stretches, longest := map[string]int64{}, map[string]int{}, map[string]int64{}
	if n.SeenExactly() {
		for _, s := range n.Exact(account.Blocked) {
			if calls[callOf(s)] {
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
	for _, call := range sortedByNs(ns) {
		f.support(source, fmt.Sprintf("the main thread was blocked in %s() %s, %s in all, up to %s at a time", call,
			times(stretches[call]), dur(ns[call]), dur(longest[call])),
			float64(ns[call]), "ns")
	}
}

// supportLatency says what LATENCY has of the events that begin with prefix.
func (f *Finding) supportLatency(n *Node, events map[string]bool) {
	longest, count := map[string]int64{}, map[string]int{}
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		if d := recording.DetailOf[recording.LatencyDetail](e); events[d.Event] {
			longest[d.Event] = max(longest[d.Event], e.DurationNs)
			count[d.Event]++
		}
	}
	for _, event := range sortedByNs(longest) {
		f.support(recording.SourceServer, fmt.Sprintf("LATENCY: %s up to %s, in %d different seconds", event,
			dur(longest[event]), count[event]), float64(longest[event]), "ns")
	}
}
