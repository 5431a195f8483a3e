package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// aofEverysecStall: the fsync of the background thread is still at work; after two seconds of patience the main thread
// writes all the same, and blocks behind it in the file system (aof.c, flushAppendOnlyFile).
var aofEverysecStall = Cause{
	ID:    "aof-everysec-stall",
	Title: "The disk is too slow for the append-only file: the event loop blocks in write()",
	Layer: "persistence",
	Class: ServerStall,
	Needs: Needs{
		T0: "aof_delayed_fsync rising, LATENCY aof-write-pending-fsync or aof-write-active-child",
		T1: "the main thread blocked in write() inside the slow calls, with appendfsync everysec or no",
		T2: "each time that the main thread was blocked, exact, with the system call, inside the clients' own calls",
	},
	Explain: explainEverysec,
}

var everysecEvents = facts.WordSet("aof-write aof-write-pending-fsync aof-write-active-child aof-write-alone " +
	"aof-fstat " +
	"aof-rename")

func explainEverysec(n *facts.Node) *Finding {
	a := n.AOF()
	if !a.Enabled || a.Fsync == "always" || a.Fsync == "" && n.SyncsInMainThread() {
		return nil
	}
	delayed := n.Growth("aof_delayed_fsync")
	cl, confidence := n.DiskClaim(facts.InSyscall(facts.DiskSyscalls)), 0.95
	told := n.HasLatencyEvent(everysecEvents)
	if !n.HostWatched() {
		confidence = 0.85
	}
	pending := fsyncPending(n)
	if open := n.UnexplainedWaits(); !told && (delayed > 0 || pending >= longFsyncNs) && cl.Ns*2 < open.Ns {
		cl, confidence = n.Claim(func(_ account.Account, s account.Segment) bool {
			return facts.IsUnexplainedWait(s) && s.State != account.Busy || s.Actor == account.Server &&
				s.State == account.Blocked &&
				facts.DiskSyscalls[facts.SyscallOf(s)]
		}), 0.75
		if delayed == 0 {
			confidence = 0.55
		}
	}
	if !cl.Matters() {
		return nil
	}
	f := finding(n, cl, confidence)
	f.support(recording.SourceServer, "appendonly yes, appendfsync "+orUnknown(a.Fsync), 1, "")
	if delayed > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("aof_delayed_fsync rose by %.0f: so often a write did not wait "+
			"any longer for the fsync before it", delayed), delayed, "writes")
	} else {
		f.doubt(recording.SourceServer, "aof_delayed_fsync did not rise", 0, "writes")
		f.Confidence = min(f.Confidence, 0.9)
	}
	if pending >= longFsyncNs {
		f.support(recording.SourceServer, fmt.Sprintf("an fsync was under way for %s of the watch "+
			"(aof_pending_bio_fsync)", facts.Dur(pending)), float64(pending), "ns")
	}
	f.supportBlocked(n, facts.DiskSyscalls)
	f.supportLatency(n, everysecEvents)
	f.support(n.CallSource(), fmt.Sprintf("%d of %d slow calls waited for it, up to %s in one call", cl.Calls,
		len(n.Ledger.Slow), facts.Dur(cl.MaxNs)), float64(cl.Calls), "calls")
	f.supportAppended(n)
	child := false
	for _, field := range []string{"rdb_bgsave_in_progress", "aof_rewrite_in_progress"} {
		if v, ok := n.Info(field).Max(); ok && v > 0 {
			child = true
			f.support(recording.SourceServer, "a child was writing to the disk meanwhile ("+field+")", v, "")
		}
	}
	f.Fix = []string{"Give the AOF a disk of its own, or a faster one: iostat -x 1 shows who keeps it busy (w_await, " +
		"%util)."}
	if v, ok := n.Config("no-appendfsync-on-rewrite"); child && (!ok || v == "no") {
		f.Fix = append([]string{"CONFIG SET no-appendfsync-on-rewrite yes   # no fsync while BGSAVE or BGREWRITEAOF " +
			"writes"}, f.Fix...)
	}
	f.Fix = append(f.Fix, "sysctl vm.dirty_background_bytes=33554432 vm.dirty_bytes=268435456: the kernel writes "+
		"early and little instead of late and much.",
		"Or keep the AOF on a replica only: CONFIG SET appendonly no here.")
	f.See = []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/#latency-due-to-aof-and-disk-io", "https://github.com/redis/redis/issues/641"}
	return f
}

// longFsyncNs is more than the fsyncs of a whole watch take on a disk that keeps up.
const longFsyncNs = int64(1500e6)

// fsyncPending is for how long the background thread was seen with an fsync to do.
func fsyncPending(n *facts.Node) int64 {
	var ns int64
	s := n.Info("aof_pending_bio_fsync")
	for i, p := range s {
		to := n.EndNs
		if i+1 < len(s) {
			to = s[i+1].TimeNs
		}
		if p.Value > 0 {
			ns += to - p.TimeNs
		}
	}
	return ns
}
