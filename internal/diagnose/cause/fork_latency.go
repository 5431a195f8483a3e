package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// forkLatency: fork() copies the page tables of the whole heap; no client is served meanwhile.
var forkLatency = Cause{
	ID:      "fork-latency",
	Class:   ServerStall,
	Changes: []string{"save", "append*", "BGSAVE", "BGREWRITEAOF"},
	Explain: explainFork,
}

func explainFork(n *facts.Node) *Finding {
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool {
		return s.Kind == account.KindFork || mainthread.KindOf(n, s) == mainthread.KindFork
	})
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	why, longest, forks := whyForked(n)
	for _, s := range h.Suspects {
		if s.Kind == account.KindFork {
			longest = max(longest, s.DurationNs)
		}
	}
	if longest == 0 {
		longest = h.Suspects[0].DurationNs // BGSAVE in SLOWLOG is as long as its fork
	}
	f.support(recording.SourceServer, float64(longest), "ns",
		"forked %s, the longest took %s%s (latest_fork_usec)", facts.TimesText(max(forks, 1)), format.Brief(longest),
		forWhy[why])
	f.supportWaits(n, h, "the fork")
	if rss, ok := n.Series(series.UsedMemoryRSS).Max(); ok && rss > 0 {
		perGB := float64(longest) / rss * 1e9
		f.support(recording.SourceServer, perGB, "ns/GB",
			"the process has %.2f GB resident: %s per GB (9-13 ms is normal)", rss/1e9, format.Brief(int64(perGB)))
	}
	f.FixSteps = append(forkLess(n, why), change("smaller-shards", "Keep less than about 10 GB in each server: the "+
		"fork's time grows with the resident memory, by about 10 ms per GB on hardware, and ten times that in old "+
		"virtual machines (Xen PV)"))
	return f
}

var forWhy = map[string]string{
	"rdb": " for a snapshot (BGSAVE)", "aof-rewrite": " for an AOF rewrite",
	"replication": " for a full resync of a replica",
}
