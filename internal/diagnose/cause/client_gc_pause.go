package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// clientGCPause: the caller's runtime stops the program to collect garbage.
var clientGCPause = Cause{
	ID:      "client-gc-pause",
	Explain: explainClientGC,
}

func explainClientGC(n *facts.Node) *Finding {
	l := caller.LateReadsOf(n, true, func(t *hosts.Threads, s account.Segment) int64 {
		if !caller.IsReplyUnread(s) && s.State != account.RunQueue && s.State != account.Blocked {
			return 0
		}
		return t.Collecting.OverlapNs(s.FromNs, s.ToNs)
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim)
	f.loseUnsent(n, l)
	c := f.supportLateCalls(n, l, "while it collected garbage")
	t := hosts.ProcessThreads(n.Case)[c.PID]
	longest := int64(0)
	for _, s := range t.Collecting {
		longest = max(longest, s.ToNs-s.FromNs)
	}
	f.support(recording.SourceTap, float64(len(t.Collecting)), "collections",
		"its runtime reported %s of at least 1 ms, %s in all, up to %s", counted(len(t.Collecting), "collection"),
		format.Brief(t.Collecting.TotalNs()), format.Brief(longest))
	if rss, ok := n.ProcessSeries(c.PID, series.ClientRSS).Max(); ok {
		f.support(recording.SourceHost, rss, "bytes", "its memory is %.0f MB", rss/1e6)
	}
	if t.ThrottledNs > 0 {
		f.doubt(recording.SourceTap, float64(t.ThrottledNs), "ns",
			"its cgroup was throttled meanwhile: %s", format.Brief(t.ThrottledNs))
	}
	f.FixSteps = collectorFix(c)
	return f
}

// collectorFix is for the runtime of the caller, or for all where its name does not tell.
func collectorFix(c *caller.Caller) []remedy.Step {
	all := []remedy.Step{{
		ID: "collect-less-often", Kind: remedy.Setting, Library: "Python", Option: "gc.set_threshold", To: "50000",
		Text: "As gc.set_threshold(50000, 20, 100), and gc.freeze() once long-lived objects are loaded; or " +
			"gc.disable() where no cycles are made",
		Risk: "cycles of objects are freed later, and take memory until then", Restart: "the application",
	}, {
		ID: "concurrent-collector", Kind: remedy.Setting, Library: "JVM", Option: "-XX:+UseZGC", To: "on",
		Text: "Or G1 with -XX:MaxGCPauseMillis, and a larger heap; -Xlog:gc shows the pauses",
		Risk: "it takes more CPU time and memory", Restart: "the application",
	}, {
		ID: "larger-young-generation", Kind: remedy.Setting, Library: "Node", Option: "--max-semi-space-size",
		To: "64", Text: "In MB, so that fewer objects survive; --trace-gc shows the pauses",
		Risk: "it takes more memory", Restart: "the application",
	}}
	fewer := inApplication("fewer-objects", "Create fewer and smaller objects per reply, and keep large caches "+
		"outside the process or in few containers")
	for i, name := range []string{"python", "java", "node"} {
		if strings.HasPrefix(c.Comm, name) {
			return []remedy.Step{all[i], fewer}
		}
	}
	for i := range all[1:] {
		all[i+1].Or = true
	}
	return append(all, fewer)
}
