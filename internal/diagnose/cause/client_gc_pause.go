package cause

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
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
	var f *Finding
	var c *caller.Caller
	if l != nil {
		f = finding(n, l.Claim)
		f.loseUnsent(n, l)
		c = f.supportLateCalls(n, l, "while it collected garbage")
	} else if f, c = collectsBetweenCalls(n); f == nil {
		return nil
	}
	t := hosts.ProcessThreads(n.Case)[c.PID]
	f.support(recording.SourceTap, float64(len(t.Collecting)), "collections",
		"its runtime reported %s of at least 1 ms, %s in all, up to %s", counted(len(t.Collecting), "collection"),
		format.Brief(t.Collecting.TotalNs()), format.Brief(longest(t.Collecting)))
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

// collectsBetweenCalls finds a process that stands still to collect garbage when none of its replies waits: what it
// wants to call meanwhile is not sent. It is nil unless that is for more of the time than a healthy one's calls may be
// slow.
func collectsBetweenCalls(n *facts.Node) (f *Finding, most *caller.Caller) {
	var lost, each, calls float64
	mostLost := 0.0
	for _, c := range caller.Callers(n) {
		t := hosts.ProcessThreads(n.Case)[c.PID]
		if t == nil {
			continue
		}
		long := slices.DeleteFunc(slices.Clone(t.Collecting), func(s facts.Span) bool {
			return s.ToNs-s.FromNs < n.NoticedNs()
		})
		if len(long) < degree.Several || float64(long.TotalNs()) <= facts.HealthyMaxShare*n.Seconds()*1e9 {
			continue
		}
		wait := caller.UnsentNs(n, c, long)
		lost, each = lost+wait, max(each, float64(longest(long)))
		calls += float64(c.AppCalls()) * float64(long.TotalNs()) / 1e9 / n.Seconds()
		if wait > mostLost {
			most, mostLost = c, wait
		}
	}
	if most == nil {
		return nil, nil
	}
	f = &Finding{Of: n.Ledger.Calls(), Grade: Inferred}
	f.lose(n, facts.LostWaiting, lost, int64(each))
	f.support(recording.SourceTap, calls, "calls", "no reply waited meanwhile; but at its rate it wants to make about "+
		"%.0f calls in that time, which are sent up to %s late", calls, format.Brief(int64(each)))
	return f, most
}

func longest(spans facts.Spans) (ns int64) {
	for _, s := range spans {
		ns = max(ns, s.ToNs-s.FromNs)
	}
	return ns
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
