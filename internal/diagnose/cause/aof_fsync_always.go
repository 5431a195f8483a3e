package cause

import (
	"fmt"
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// aofFsyncAlways: with appendfsync always the main thread waits for the disk in each turn of the loop in which
// something was written; reads of the same turn wait too. Catalogue J3.
var aofFsyncAlways = Cause{
	ID:    "aof-fsync-always",
	Title: "appendfsync always: the event loop waits for the disk at every write",
	Layer: "persistence",
	Needs: Needs{
		T0: "appendfsync always in CONFIG, LATENCY aof-fsync-always",
		T1: "the main thread blocked in fdatasync() or fsync() inside the slow calls",
		T2: "each time that the main thread was blocked, exact, with the system call, inside the clients' own calls",
	},
	Explain: explainFsyncAlways,
}

var alwaysEvents = words("aof-fsync-always aof-write aof-write-alone aof-write-active-child")

func explainFsyncAlways(n *Node) *Finding {
	a := n.aof()
	if !a.on || a.fsync != "always" && !(a.fsync == "" && n.syncsInMain()) {
		return nil
	}
	cl, confidence := n.onDisk(diskCall(diskCalls)), 0.97
	told := n.latencyHas(words("aof-fsync-always"))
	if !n.Hosted() {
		confidence = 0.9
	}
	if open := n.waited(); !told && cl.Ns*2 < open.Ns && n.writes() {
		// A file system in user space waits in an interruptible sleep, and without the host's files nothing is seen at
		// all.
		cl, confidence = n.Claim(func(_ account.Account, s account.Segment) bool {
			return isWaiting(s) && s.State != account.Busy || s.Actor == account.Server && s.State == account.Blocked &&
				diskCalls[callOf(s)]
		}), 0.6
		if n.Hosted() {
			confidence = 0.45
		}
	}
	if !cl.matters() {
		return nil
	}
	f := n.finding(cl, confidence)
	f.support(recording.SourceServer, "appendonly yes, appendfsync "+orUnknown(a.fsync), 1, "")
	f.supportBlocked(n, diskCalls)
	f.supportLatency(n, alwaysEvents)
	f.support(n.caller(), fmt.Sprintf("%d of %d slow calls waited for it, up to %s in one call", cl.Calls,
		len(n.Ledger.Slow), dur(cl.MaxNs)), float64(cl.Calls), "calls")
	f.supportAppended(n)
	f.Fix = []string{
		"CONFIG SET appendfsync everysec   # at most about a second of writes is lost in a power cut",
		"If always must stay: a disk with a power-protected write cache (fdatasync in µs), and the AOF on a disk of " +
			"its own; batch writes, since all writes of one turn of the loop share one fsync.",
	}
	f.See = []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/#how-durable-is-the-append-only-file"}
	return f
}

// syncsInMain: only appendfsync always makes the main thread call fdatasync() again and again.
func (n *Node) syncsInMain() bool {
	count := 0
	for _, s := range n.Exact(account.Blocked) {
		if call := callOf(s); call == "fdatasync" || call == "fsync" {
			count++
		}
	}
	for _, e := range n.Events(recording.SourceHost, recording.KindBlocked) {
		if s := recording.DetailOf[recording.ThreadDetail](e).Syscall; s == "fdatasync" || s == "fsync" {
			count++
		}
	}
	return count >= 3 || n.latencyHas(words("aof-fsync-always"))
}

func (n *Node) latencyHas(events map[string]bool) bool {
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		if events[recording.DetailOf[recording.LatencyDetail](e).Event] {
			return true
		}
	}
	return false
}

// writes reports whether anything was appended to the AOF.
func (n *Node) writes() bool { return n.Growth("aof_current_size") > 0 }

func (f *Finding) supportAppended(n *Node) {
	if grown := n.Growth("aof_current_size"); grown > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("%.2f MB were appended to the AOF in the watch", grown/1e6),
			grown, "bytes")
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown (CONFIG GET is forbidden)"
	}
	return s
}

// sortedByNs lists the keys, those with the largest value first.
func sortedByNs(m map[string]int64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		if m[keys[i]] != m[keys[j]] {
			return m[keys[i]] > m[keys[j]]
		}
		return keys[i] < keys[j]
	})
	return keys
}
