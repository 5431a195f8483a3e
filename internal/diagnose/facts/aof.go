package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// aof is how the server keeps its append-only file.
type AOFConfig struct {
	Enabled bool
	Fsync   string // always, everysec, no; empty where CONFIG is forbidden
}

func (n *Node) AOF() AOFConfig {
	var a AOFConfig
	if v, ok := n.Info("aof_enabled").Max(); ok {
		a.Enabled = v == 1
	}
	if v, ok := n.Config("appendonly"); ok && v == "yes" {
		a.Enabled = true
	}
	a.Fsync, _ = n.Config("appendfsync")
	return a
}

// DiskCalls are the system calls by which the main thread waits for the disk under an append-only file.
var DiskSyscalls = WordSet("write pwrite64 writev pwritev fsync fdatasync sync_file_range ftruncate fallocate rename " +
	"renameat renameat2 unlink unlinkat openat open close lseek")

// OnDisk claims the time that slow calls waited while the main thread was blocked on the disk, seen by the host or told
// by LATENCY.
func (n *Node) DiskClaim(match func(account.Segment) bool) Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool {
		if s.Suspect >= 0 && n.Ledger.Suspects[s.Suspect].Kind == account.KindAOF {
			return true
		}
		return s.Actor == account.Server && s.State == account.Blocked && s.Suspect < 0 && match(s)
	})
}

// DiskCall reports whether a blocked segment is in one of the calls.
func InSyscall(calls map[string]bool) func(account.Segment) bool {
	return func(s account.Segment) bool { return calls[SyscallOf(s)] }
}

// CallOf is the system call of a blocked segment, whose culprit may go on with the file: "fdatasync of appendonly.aof
// on vda".
func SyscallOf(s account.Segment) string {
	call, _, _ := strings.Cut(s.Culprit, " of ")
	return call
}

// SyncsInMain: only appendfsync always makes the main thread call fdatasync() again and again.
func (n *Node) SyncsInMainThread() bool {
	count := 0
	for _, s := range n.Exact(account.Blocked) {
		if call := SyscallOf(s); call == "fdatasync" || call == "fsync" {
			count++
		}
	}
	for _, e := range n.Events(recording.SourceHost, recording.KindBlocked) {
		if s := recording.DetailOf[recording.ThreadDetail](e).Syscall; s == "fdatasync" || s == "fsync" {
			count++
		}
	}
	return count >= 3 || n.HasLatencyEvent(WordSet("aof-fsync-always"))
}

func (n *Node) HasLatencyEvent(events map[string]bool) bool {
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		if events[recording.DetailOf[recording.LatencyDetail](e).Event] {
			return true
		}
	}
	return false
}
