package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// cowFaultsAfterFork: while the child process of a snapshot lives, the first write to each page faults, and the kernel
// copies the page during the command.
var cowFaultsAfterFork = Cause{
	ID:      "cow-faults-after-fork",
	Class:   ServerStall,
	Changes: []string{"save", "append*", "BGSAVE", "BGREWRITEAOF", "disable-thp"},
	Explain: explainCow,
}

func explainCow(n *facts.Node) *Finding {
	c := hosts.PageCopiesOf(n)
	if !c.Matters() {
		return nil
	}
	perSecond, alone := c.PerSecond()
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			if s.Actor == account.Server && (s.State == account.Busy || s.State == account.Exec) ||
				s.State == account.Unexplained && a.Call.Source == recording.SourceProbe {
				times.Add(s, c.NsWithin(s.FromNs, s.ToNs))
			}
		}
		return times
	})
	if !cl.Matters() {
		return nil
	}
	f := finding(n, cl)
	without := fmt.Sprintf("without a child %.0f", alone)
	if c.WithoutChildSeconds == 0 {
		without = "and there was no time without a child"
	}
	f.support(recording.SourceHost, perSecond, "per second",
		"while a child process saved (%.0f s of the watch) the main thread had %.0f minor faults per second, %s",
		c.WithChildSeconds, perSecond, without)
	if c.Measured {
		f.support(recording.SourceServer, c.Share(), "of its CPU time",
			"they took %.0f %% of its CPU time: %s of kernel time each, without sockets and forks", 100*c.Share(),
			format.Brief(int64(c.FaultNs)))
	} else {
		f.support(recording.SourceHost, c.Share(), "of its CPU time",
			"at %s per page copy, as measured elsewhere, they took %.0f %% of its CPU time",
			format.Brief(int64(hosts.DefaultFaultNs)), 100*c.Share())
	}
	now, _ := n.Series(series.CurrentCowSize).Max()
	last, _ := n.Series(series.RDBLastCowSize).Max()
	if most := max(now, last); most > 0 {
		f.support(recording.SourceServer, most, "bytes",
			"%.0f MB were copied for one snapshot (current_cow_size, rdb_last_cow_size)", most/1e6)
	}
	f.support(recording.SourceTap, float64(cl.Calls), "calls",
		"%s ran meanwhile or waited for a call that did; copies took up to %s of one call",
		ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	if faults := n.Growth(series.MainMajorFaults); faults > 0 {
		f.weaken(1)
		f.doubt(recording.SourceHost, faults, "faults",
			"%s had to be read from disk as well (major faults)", counted(faults, "page"))
	}
	isFork := func(s account.Suspect) bool { return s.Kind == account.KindFork }
	if forks := mainthread.ClaimOfSuspects(n, isFork); forks.Ns > 0 {
		f.doubt(recording.SourceServer, float64(forks.Calls), "calls",
			"%s waited for the fork itself", counted(forks.Calls, "slow call"))
	}
	huge := facts.LastValue(n.Series(series.ProcessAnonHuge))
	if huge > 0 {
		f.support(recording.SourceHost, huge, "bytes",
			"%.0f MB of it are huge pages: the first write to each copies 2 MB", huge/1e6)
	}
	f.FixSteps = cowFix(n, huge > 0)
	return f
}

func cowFix(n *facts.Node, huge bool) (fix []remedy.Step) {
	if thp, ok := n.Config("disable-thp"); huge && ok && thp == "no" {
		fix = append(fix, remedy.ConfigSet(n, "no-huge-pages", "disable-thp", "yes",
			"Then a copy is 4 kB, and not 2 MB"))
	} else if huge {
		const file = "/sys/kernel/mm/transparent_hugepage/enabled"
		fix = append(fix, remedy.Step{
			ID: "no-huge-pages", Kind: remedy.Command, Restart: "the server",
			Text:    "No transparent huge pages but for those who ask for them: then a copy is 4 kB, and not 2 MB",
			Command: "echo madvise > " + file, Undo: "echo always > " + file,
			Risk: "it is for all processes of the host, and until the next boot",
		})
	}
	why, _, _ := whyForked(n)
	return append(fix, forkLess(n, why)...)
}
