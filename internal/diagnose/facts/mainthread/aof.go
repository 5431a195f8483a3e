package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// AOFConfig is how the server keeps its append-only file.
type AOFConfig struct {
	// Enabled says that there is an append-only file.
	Enabled bool
	// Fsync is appendfsync: always, everysec or no; empty where CONFIG is forbidden.
	Fsync string
}

// AOF is read from INFO and CONFIG GET.
func AOF(n *facts.Node) AOFConfig {
	var a AOFConfig
	if v, ok := n.Series(series.AOFEnabled).Max(); ok {
		a.Enabled = v == 1
	}
	if v, ok := n.Config("appendonly"); ok && v == "yes" {
		a.Enabled = true
	}
	a.Fsync, _ = n.Config("appendfsync")
	return a
}

// DiskSyscalls are the system calls in which the main thread waits for the disk because of an append-only file.
var DiskSyscalls = facts.WordSet("write pwrite64 writev pwritev fsync fdatasync sync_file_range ftruncate fallocate " +
	"rename renameat renameat2 unlink unlinkat openat open close lseek")

// DiskClaim claims the time that slow calls waited while the main thread was blocked on the disk: in a segment that
// matches, or in one that the server's LATENCY reported.
func DiskClaim(n *facts.Node, match func(account.Segment) bool) facts.Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool {
		if s.Suspect >= 0 && n.Ledger.Suspects[s.Suspect].Kind == account.KindAOF {
			return true
		}
		return s.Actor == account.Server && s.State == account.Blocked && s.Suspect < 0 && match(s)
	})
}

// InSyscall matches blocked segments that are in one of some system calls.
func InSyscall(calls map[string]bool) func(account.Segment) bool {
	return func(s account.Segment) bool { return calls[SyscallOf(s)] }
}

// SyscallOf is the system call of a blocked segment, whose culprit may continue with the file: "fdatasync of
// appendonly.aof on vda". Where it is about something else than a file it is more than a call: "write to a pipe".
func SyscallOf(s account.Segment) string {
	call, _, _ := strings.Cut(s.Culprit, " of ")
	return call
}

// PageFault is the culprit of a thread that is blocked outside any system call.
const PageFault = "page fault"

// SyncsInMainThread reports whether the main thread called fdatasync() or fsync() several times: only appendfsync
// always makes it do so again and again; a rewrite or a restart may do so once or twice.
func SyncsInMainThread(n *facts.Node) bool {
	count := 0
	for _, s := range Exact(n, account.Blocked) {
		if call := SyscallOf(s); call == "fdatasync" || call == "fsync" {
			count++
		}
	}
	for _, e := range n.Events(recording.SourceHost, recording.KindBlocked) {
		if s := recording.DetailOf[recording.ThreadDetail](e).Syscall; s == "fdatasync" || s == "fsync" {
			count++
		}
	}
	return count >= degree.Several || HasLatencyEvent(n, facts.WordSet("aof-fsync-always"))
}

// HasLatencyEvent reports whether LATENCY had one of some events during the watch.
func HasLatencyEvent(n *facts.Node, events map[string]bool) bool {
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		if events[recording.DetailOf[recording.LatencyDetail](e).Event] {
			return true
		}
	}
	return false
}
