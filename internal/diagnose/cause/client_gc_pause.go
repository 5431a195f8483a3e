package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// clientGCPause: the caller's runtime stops the program to collect garbage.
var clientGCPause = Cause{
	ID:    "client-gc-pause",
	Title: "The client's garbage collector stops it while its replies wait in the sockets",
	Layer: "client-host",
	Needs: Needs{
		T0: "nothing: the server is fine",
		T2: "calls with their reply in the socket while the client's runtime reported a " +
			"garbage collection (probes of CPython and the JVM)",
	},
	Mechanism: "The runtime stops all threads of the program to collect garbage. Replies that arrive meanwhile " +
		"stay in the sockets.",
	RuledOut: "Collections that the runtime reports and that are short, or at another time than the slow calls",
	LookAlikes: []LookAlike{
		{"client-eventloop-blocked", "there the thread works on something else, and the runtime reports no " +
			"collection"},
		{"client-cfs-throttled", "there the cgroup was throttled"},
	},
	Remedy: "A collector with short pauses (ZGC, G1 with MaxGCPauseMillis), gc.freeze() and higher thresholds " +
		"in Python, fewer long-lived objects.",
	See: []string{
		"https://docs.python.org/3/library/gc.html",
		"https://docs.oracle.com/en/java/javase/21/gctuning/",
		"https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/TroubleshootingConnections.html",
	},
	Explain: explainClientGC,
}

func explainClientGC(n *facts.Node) *Finding {
	l := n.LateReads(true, func(t *facts.Threads, s account.Segment) int64 {
		if !facts.IsReplyUnread(s) && s.State != account.RunQueue && s.State != account.Blocked {
			return 0
		}
		return t.Collecting.OverlapNs(s.FromNs, s.ToNs)
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim, 0.95)
	f.loseUnsent(n, l)
	c := f.supportLateCalls(n, l, "while it collected garbage")
	t := n.ProcessThreads()[c.PID]
	longest := int64(0)
	for _, s := range t.Collecting {
		longest = max(longest, s.ToNs-s.FromNs)
	}
	f.support(recording.SourceTap, float64(len(t.Collecting)), "collections",
		"its runtime reported %s of at least 1 ms, %s in all, up to %s", counted(len(t.Collecting), "collection"),
		format.Brief(t.Collecting.TotalNs()), format.Brief(longest))
	if rss, ok := n.ProcessSeries(c.PID, "rss_bytes").Max(); ok {
		f.support(recording.SourceHost, rss, "bytes", "its memory is %.0f MB", rss/1e6)
	}
	if t.ThrottledNs > 0 {
		f.doubt(recording.SourceTap, float64(t.ThrottledNs), "ns",
			"its cgroup was throttled meanwhile: %s", format.Brief(t.ThrottledNs))
	}
	f.Fix = collectorFix(c)
	return f
}

func collectorFix(c *facts.Caller) []string {
	fix := []string{
		"Python: gc.freeze() once long-lived objects are loaded, gc.set_threshold(50_000, 20, 100), or " +
			"gc.disable() where no cycles are made; keep large caches outside the process or in few containers",
		"JVM: ZGC (-XX:+UseZGC), or G1 with -XX:MaxGCPauseMillis, and a larger heap; check -Xlog:gc",
		"Node: --max-semi-space-size so that fewer objects survive, fewer " +
			"long-lived objects; --trace-gc shows the pauses",
	}
	for i, name := range []string{"python", "java", "node"} {
		if strings.HasPrefix(c.Comm, name) {
			return []string{fix[i], "Create fewer and smaller objects per reply"}
		}
	}
	return append(fix, "Create fewer and smaller objects per reply")
}
