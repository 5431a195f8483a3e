package cause

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// aofEverysecStall: the fsync of the background thread is still running. After two seconds the main thread writes
// anyway, and blocks behind the fsync in the file system (aof.c, flushAppendOnlyFile).
var aofEverysecStall = Cause{
	ID:      "aof-everysec-stall",
	Class:   ServerStall,
	Changes: []string{"append*", "no-appendfsync-on-rewrite"},
	Explain: explainEverysec,
}

var everysecEvents = facts.WordSet("aof-write aof-write-pending-fsync aof-write-active-child aof-write-alone " +
	"aof-fstat aof-rename")

func explainEverysec(n *facts.Node) *Finding {
	a := mainthread.AOF(n)
	if !a.Enabled || a.Fsync == "always" || a.Fsync == "" && mainthread.SyncsInMainThread(n) {
		return nil
	}
	delayed := n.Growth(series.AOFDelayedFsync)
	cl, doubts := mainthread.DiskClaim(n, mainthread.InSyscall(mainthread.DiskSyscalls)), 0
	pending := fsyncPending(n)
	lasting := pending >= int64(degree.Several*degree.Long) // one is begun each second, and INFO is read as often
	if open := n.UnexplainedWaits(); (delayed > 0 || lasting) && cl.Ns*2 < open.Ns &&
		!mainthread.HasLatencyEvent(n, everysecEvents) {
		cl = n.Claim(maybeOnDisk)
		if delayed == 0 {
			doubts = 1
		}
	}
	if !cl.Matters() {
		return nil
	}
	f := diskFinding(n, cl, a.Fsync, everysecEvents)
	f.weaken(doubts)
	if delayed > 0 {
		f.support(recording.SourceServer, delayed, "writes",
			"aof_delayed_fsync rose by %.0f: that often a write stopped waiting for the fsync before it", delayed)
	} else {
		f.doubt(recording.SourceServer, 0, "writes", "aof_delayed_fsync did not rise")
	}
	if lasting {
		f.support(recording.SourceServer, float64(pending), "ns",
			"an fsync was running for %s of the watch (aof_pending_bio_fsync)", format.Brief(pending))
	}
	child := false
	for _, field := range []series.Name{series.RDBBgsaveInProgress, series.AOFRewriteInProgress} {
		if v, ok := n.Series(field).Max(); ok && v > 0 {
			child = true
			f.support(recording.SourceServer, v, "", "a child process was writing to the disk meanwhile (%s)",
				field.Name)
		}
	}
	f.blameCalls(n, "the bytes of requests", requestBytes)
	f.FixSteps = everysecFix(n, child)
	return f
}

// everysecFix: child says that a child process wrote to the disk, too.
func everysecFix(n *facts.Node, child bool) (fix []remedy.Step) {
	if v, ok := n.Config("no-appendfsync-on-rewrite"); child && (!ok || v == "no") {
		fix = append(fix, remedy.ConfigSet(n, "no-fsync-while-saving", "no-appendfsync-on-rewrite", "yes",
			"No fsync while BGSAVE or BGREWRITEAOF writes").
			Risking("a power cut meanwhile loses up to 30 s of writes"))
	}
	return append(fix, remedy.Step{
		ID: "faster-disk", Kind: remedy.Change, Restart: "the server",
		Text: "Put the AOF (dir in redis.conf) on a faster disk, or on one that nothing else writes to",
	}, orElse(remedy.ConfigSet(n, "aof-on-replica", "appendonly", "no",
		"Keep the AOF on a replica only, and have none here").
		Risking("a crash loses what neither a replica nor a snapshot has")))
}

// fsyncPending is how long the background thread had an fsync pending.
func fsyncPending(n *facts.Node) int64 {
	var ns int64
	s := n.Series(series.AOFPendingBioFsync)
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
