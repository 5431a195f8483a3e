package cause

import (
	"cmp"
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// serverRestarted: the server ended and was started again during the watch. Connections broke, new ones were refused
// until it listened again, and calls were refused until it had loaded its data.
var serverRestarted = Cause{
	ID:      "server-restarted",
	Changes: []string{"restart", "version", "package"},
	Explain: explainRestarted,
}

func explainRestarted(n *facts.Node) *Finding {
	if _, failedOver := nodes.TakeoverOf(n); failedOver {
		return nil // another node has its place: its restart is not what callers waited for
	}
	restarts := nodes.Restarts(n)
	if len(restarts) == 0 {
		return nil
	}
	lost, loading, stretch := lostByRestarts(n, restarts)
	cl := n.ClaimOf(lost.CallTimes)
	f := finding(n, cl)
	f.loseWhile(n, lost)
	f.Title = "The server was restarted during the watch"
	if len(restarts) > 1 {
		f.Title = fmt.Sprintf("The server was restarted %s during the watch", facts.TimesText(len(restarts)))
	}
	f.supportRestarts(n, restarts)
	if loading > 0 {
		f.Title += ", and refused calls while it loaded its data"
		f.support(recording.SourceServer, float64(loading), "ns",
			"it then loaded its data for %s, and refused calls meanwhile (LOADING)", format.Duration(loading))
	}
	f.supportOwnFailures(n)
	f.supportLostCalls(n, stretch)
	f.supportProcessEnd(n)
	f.FixSteps = restartFix(n, loading)
	return f
}

// lostByRestarts is when calls could not be served because of restarts, how much of it was loading, and the stretch
// from the first to the last. Callers of a replica can ask another node while it loads.
func lostByRestarts(n *facts.Node, restarts []nodes.Restart) (lost facts.Spans, loadingNs int64, all facts.Span) {
	all = facts.Span{FromNs: restarts[0].FromNs, ToNs: restarts[0].ToNs}
	loading := nodes.RefusingSpans(n, "LOADING")
	for i, r := range restarts {
		all.FromNs, all.ToNs = min(all.FromNs, r.FromNs), max(all.ToNs, r.ToNs)
		lost = append(lost, r.Span)
		if nodes.WasReplica(n) {
			continue
		}
		until := n.EndNs
		if i+1 < len(restarts) {
			until = restarts[i+1].FromNs
		}
		loadingNs += r.LoadingNs
		for _, s := range loading {
			if s.ToNs > r.FromNs && s.FromNs < until {
				lost = append(lost, facts.Span{FromNs: max(s.FromNs, r.FromNs), ToNs: min(s.ToNs, until)})
			}
		}
	}
	slices.SortFunc(lost, func(a, b facts.Span) int { return int(a.FromNs - b.FromNs) })
	return facts.MergeSpans(lost), loadingNs, all
}

func (f *Finding) supportRestarts(n *facts.Node, restarts []nodes.Restart) {
	r := slices.MaxFunc(restarts, func(a, b nodes.Restart) int { return cmp.Compare(a.ToNs-a.FromNs, b.ToNs-b.FromNs) })
	source, how := recording.SourceServer, "INFO has another run_id"
	switch {
	case r.RunIDAfter == "" && r.PIDAfter != 0:
		source, how = recording.SourceHost, "another process listens there"
	case r.RunIDBefore == "" || r.RunIDAfter == "":
		how = "its uptime went back (INFO)"
	}
	if r.PIDBefore != 0 && r.PIDAfter != 0 {
		how += fmt.Sprintf(", its process id is %d instead of %d", r.PIDAfter, r.PIDBefore)
	}
	f.support(source, float64(len(restarts)), "restarts", "%s, %s: %s", facts.TimesText(len(restarts)),
		sinceStart(n, r.FromNs), how)
	f.support(recording.SourceProbe, float64(r.ToNs-r.FromNs), "ns", "it answered nobody for %s meanwhile",
		format.Duration(r.ToNs-r.FromNs))
}

func restartFix(n *facts.Node, loadingNs int64) []remedy.Step {
	planned := remedy.FailOverFirst
	if loadingNs > 0 {
		planned.Text += ". Then restart this server as a replica, and send callers to it when INFO says loading:0: " +
			"loading takes as long as the data is large"
	}
	return []remedy.Step{
		onHost(n, "find-why-it-ended", "Find out who or what restarted it: its log (\"User requested shutdown\", a "+
			"crash report), journalctl%s, \"out of memory\" in dmesg", remedy.WhatRunsIt(n)),
		planned,
		inApplication("retry-for-longer", "Let clients retry for longer than the restart takes, with backoff and "+
			"jitter"),
	}
}
