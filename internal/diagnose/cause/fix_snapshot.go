package cause

import (
	"fmt"
	"strconv"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// whyForked is for what the server's longest fork of the watch was: rdb, aof-rewrite or replication; empty where the
// server did not say. longestNs is that fork, and forks how many there were.
func whyForked(n *facts.Node) (why string, longestNs int64, forks int) {
	for _, e := range n.Events(recording.SourceServer, recording.KindFork) {
		forks++
		if e.DurationNs >= longestNs {
			longestNs, why = e.DurationNs, recording.DetailOf[recording.ForkDetail](e).Why
		}
	}
	return why, longestNs, forks
}

// forkLess is what makes a server fork less often, by what it forked for.
func forkLess(n *facts.Node, why string) []remedy.Step {
	switch why {
	case "aof-rewrite":
		const parameter = "auto-aof-rewrite-percentage"
		value := "200" // twice the default
		if now := n.ConfigInt(parameter); now > 0 {
			value = strconv.Itoa(2 * now)
		}
		return []remedy.Step{remedy.ConfigSet(n, "rewrite-aof-less", parameter, value, "Rewrite the AOF less often").
			Risking("the AOF becomes larger, and a restart reads it for longer")}
	case "replication":
		return []remedy.Step{largerBacklog(n)}
	}
	calls := n.Growth(series.CommandCalls("bgsave"))
	if save, ok := n.Config("save"); ok && save != "" && calls == 0 {
		return []remedy.Step{remedy.ConfigSet(n, "no-snapshots", "save", "",
			"Take no snapshots here, but on a replica, by its own save or by BGSAVE at an hour with few writes").
			Risking("a crash loses what neither a replica nor an AOF has")}
	}
	who := ""
	if calls > 0 {
		who = fmt.Sprintf(" (%s during the watch%s)", facts.TimesText(int(calls)),
			caller.FromText(n, []account.Suspect{{Command: "BGSAVE", Kind: account.KindCommand}}))
	}
	return []remedy.Step{
		change("snapshot-on-replica", "%s",
			"Send BGSAVE to a replica instead of here"+who+": cron jobs and backup tools do "+
				"that. Without a replica, at an hour with few writes"),
	}
}

// largerBacklog keeps five minutes of writes for replicas that come back, at least twice as much as now.
func largerBacklog(n *facts.Node) remedy.Step {
	const parameter = "repl-backlog-size"
	value := "268435456" // where nothing is known
	written := n.Growth(series.MasterReplOffset) / n.Seconds()
	inFiveMinutes := written * 300
	if bytes := max(2*n.ConfigInt(parameter), int(inFiveMinutes)); bytes > 0 {
		value = strconv.Itoa(bytes)
	}
	return remedy.ConfigSet(n, "larger-backlog", parameter, value, fmt.Sprintf("Keep what was written in five minutes "+
		"(%s MB per second), so that a replica that comes back needs no full copy, for which the server forks",
		format.Rounded(written/1e6))).Risking("the server takes that much memory")
}
