package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// clientEventLoopBlocked: one thread reads all replies, and it does something else: user code on the event loop.
var clientEventLoopBlocked = Cause{
	ID:    "client-eventloop-blocked",
	Title: "The client's event loop does something else while its replies lie in the sockets",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: the server's side is well",
		T2: "calls whose reply was in the socket while the one thread that reads all replies was on the CPU, or " +
			"asleep elsewhere",
	},
	Explain: explainClientLoop,
}

func explainClientLoop(n *facts.Node) *Finding {
	l := n.LateReads(true, func(t *facts.Threads, s account.Segment) int64 {
		if !facts.IsReplyUnread(s) || !n.HasSingleReader(t.PID) {
			return 0
		}
		return max(0, s.Ns()-t.Throttled.OverlapNs(s.FromNs, s.ToNs)-t.Collecting.OverlapNs(s.FromNs, s.ToNs))
	})
	if l == nil {
		return nil
	}
	f := finding(n, l.Claim, 0.9)
	c := f.lateCalls(n, l, "while the one thread that reads them did something else")
	onCPU := n.Claim(func(a account.Account, s account.Segment) bool {
		return s.Actor == account.Client && s.State == recording.Receive &&
			n.HasSingleReader(facts.PIDOf(a.Call.Client))
	})
	if onCPU.Ns*2 >= l.Ns {
		f.support(recording.SourceTap, fmt.Sprintf("that thread was on the CPU for %s of that time: it computes",
			facts.Dur(min(onCPU.Ns, l.Ns))), float64(onCPU.Ns), "ns")
	} else {
		f.support(recording.SourceTap, fmt.Sprintf("that thread slept for %s of that time, but not for its sockets: "+
			"a lock, a file or a call that blocks", facts.Dur(l.Ns-onCPU.Ns)), float64(l.Ns-onCPU.Ns), "ns")
	}
	f.stalls(n, c)
	f.doubtCollector(n, c)
	f.Fix = loopFix(c)
	f.See = []string{
		"https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code",
		"https://nodejs.org/en/learn/asynchronous-work/dont-block-the-event-loop",
		"https://github.com/redis/lettuce/wiki/Frequently-Asked-Questions",
	}
	return f
}

// stalls counts the times that the loop stood: calls of several connections that waited for the same.
func (f *Finding) stalls(n *facts.Node, c *facts.Caller) {
	var all facts.Spans
	conns := map[string]bool{}
	for _, a := range n.Ledger.Slow {
		if facts.PIDOf(a.Call.Client) != c.PID {
			continue
		}
		for _, s := range a.Segments {
			if s.Actor == account.Client && facts.IsReplyUnread(s) {
				all = append(all, facts.Span{FromNs: s.FromNs, ToNs: s.ToNs})
				conns[a.Call.Conn] = true
			}
		}
	}
	if all = facts.MergeSpans(all); len(all) > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("it happened %d times, %s on average, to %d of its connections",
			len(all), facts.Dur(all.TotalNs()/int64(len(all))), len(conns)), float64(len(all)), "times")
	}
}

// doubtCollector: seen from outside a collector that stops the program is a loop that does something else.
func (f *Finding) doubtCollector(n *facts.Node, c *facts.Caller) {
	t := n.ProcessThreads()[c.PID]
	switch {
	case t != nil && len(t.Collecting) > 0:
		f.support(recording.SourceTap, fmt.Sprintf("no garbage collection: those of this process took other %s",
			facts.Dur(t.Collecting.TotalNs())), float64(len(t.Collecting)), "collections")
	case n.ReportsCollections(c.PID):
		f.Confidence = 0.95
		f.support(recording.SourceTap, "its runtime, which tells of them, collected no garbage for long", 0,
			"collections")
	default:
		f.Confidence = 0.75
		f.doubt(recording.SourceTap, "a garbage collection that stops the program looks the same, and this runtime "+
			"does not tell of them", 0, "")
	}
}

func loopFix(c *facts.Caller) []string {
	var own, all []string
	for _, runtime := range []string{"python", "node", "java"} {
		text, _ := remedy.Of(remedy.UnblockEventLoop, runtime)
		all = append(all, text)
		if strings.HasPrefix(c.Comm, runtime) {
			own = append(own, text)
		}
	}
	out := own
	if out == nil {
		out = all
	}
	return append(out, "To see what it does meanwhile: py-spy dump --pid "+fmt.Sprint(c.PID)+", node --cpu-prof, "+
		"jstack; perf top -p "+fmt.Sprint(c.PID))
}
