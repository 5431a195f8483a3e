package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// clientGCPause: the caller's runtime stops the program to collect garbage.
var clientGCPause = Cause{
	ID:    "client-gc-pause",
	Title: "The client's garbage collector stops it while its replies lie in the sockets",
	Layer: "client-host",
	Needs: Needs{
		T0: "nothing: the server's side is well",
		T2: "calls whose reply was in the socket while the client's runtime said that it collected garbage (probes " +
			"of CPython and the JVM)",
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
	c := f.lateCalls(n, l, "while it collected garbage")
	t := n.ProcessThreads()[c.PID]
	longest := int64(0)
	for _, s := range t.Collecting {
		longest = max(longest, s.ToNs-s.FromNs)
	}
	f.support(recording.SourceTap, fmt.Sprintf("its runtime tells of %d collections of 1 ms and more, %s in all, the "+
		"longest %s", len(t.Collecting), facts.Dur(t.Collecting.TotalNs()), facts.Dur(longest)),
		float64(len(t.Collecting)),
		"collections")
	if rss, ok := n.ProcessSeries(c.PID, "rss_bytes").Max(); ok {
		f.support(recording.SourceHost, fmt.Sprintf("its memory is %.0f MB", rss/1e6), rss, "bytes")
	}
	if t.ThrottledNs > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("its cgroup was throttled meanwhile: %s", facts.Dur(t.ThrottledNs)),
			float64(t.ThrottledNs), "ns")
	}
	f.Fix = collectorFix(c)
	f.See = []string{
		"https://docs.python.org/3/library/gc.html", "https://docs.oracle.com/en/java/javase/21/gctuning/",
		"https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/TroubleshootingConnections.html",
	}
	return f
}

func collectorFix(c *facts.Caller) []string {
	fix := []string{
		"Python: gc.freeze() once what stays is loaded, gc.set_threshold(50_000, 20, 100) or gc.disable() where no " +
			"cycles are made; keep large caches outside of the process or in few containers",
		"JVM: ZGC (-XX:+UseZGC), or G1 with -XX:MaxGCPauseMillis, a larger heap, and a look at -Xlog:gc",
		"Node: --max-semi-space-size for a smaller share of survivors, a smaller heap of what stays; --trace-gc " +
			"shows the pauses",
	}
	for i, name := range []string{"python", "java", "node"} {
		if strings.HasPrefix(c.Comm, name) {
			return []string{fix[i], "Fewer and smaller objects for each reply"}
		}
	}
	return append(fix, "Fewer and smaller objects for each reply")
}
