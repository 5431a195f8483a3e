package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording/series"
)

// aofFsyncAlways: with appendfsync always, the main thread waits for the disk in each event-loop iteration that wrote
// something. Reads of the same iteration wait too.
var aofFsyncAlways = Cause{
	ID:      "aof-fsync-always",
	Class:   ServerStall,
	Changes: []string{"append*"},
	Explain: explainFsyncAlways,
}

var alwaysEvents = facts.WordSet("aof-fsync-always aof-write aof-write-alone aof-write-active-child")

func explainFsyncAlways(n *facts.Node) *Finding {
	a := mainthread.AOF(n)
	if !a.Enabled || a.Fsync != "always" && !(a.Fsync == "" && mainthread.SyncsInMainThread(n)) {
		return nil
	}
	cl, doubts := mainthread.DiskClaim(n, mainthread.InSyscall(mainthread.DiskSyscalls)), 0
	inLatency := mainthread.HasLatencyEvent(n, facts.WordSet("aof-fsync-always"))
	if open := n.UnexplainedWaits(); !inLatency && cl.Ns*2 < open.Ns && n.Growth(series.AOFCurrentSize) > 0 {
		// A file system in user space waits in an interruptible sleep; without the host's files nothing is seen at all.
		cl = n.Claim(maybeOnDisk)
		if mainthread.HostWatched(n) {
			doubts = 1
		}
	}
	if !cl.Matters() {
		return nil
	}
	f := diskFinding(n, cl, a.Fsync, alwaysEvents)
	f.weaken(doubts)
	f.FixSteps = []remedy.Step{
		remedy.ConfigSet(n, "fsync-each-second", "appendfsync", "everysec",
			"Let a background thread call fsync once per second").
			Risking("a power cut loses about one second of writes"),
		{
			ID: "faster-disk", Kind: remedy.Change, Restart: "the server", Or: true,
			Text: "Put the AOF (dir in redis.conf) on a disk with a write cache that is safe in a power cut " +
				"(fdatasync in µs), which nothing else writes to",
		},
	}
	return f
}
