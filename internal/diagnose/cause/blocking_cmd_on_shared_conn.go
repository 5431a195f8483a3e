package cause

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// blockingOnSharedConn: BLPOP, XREAD BLOCK or WAIT holds a connection by design. Until it is done, the server serves no
// other call on that connection (src/blocked.c: input of a blocked client is not processed).
var blockingOnSharedConn = Cause{
	ID:      "blocking-cmd-on-shared-conn",
	Explain: explainBlocking,
}

// waiter is the time in which a blocking command held a connection.
type waiter struct {
	facts.Span
	recording.BlockingCommandDetail
}

// waiters are those of this node, by connection.
func waiters(n *facts.Node) map[string][]waiter {
	out := map[string][]waiter{}
	for _, e := range n.Events(recording.SourceTap, recording.KindBlockingCommand) {
		d := recording.DetailOf[recording.BlockingCommandDetail](e)
		out[d.Client] = append(out[d.Client], waiter{facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs}, d})
	}
	return out
}

func explainBlocking(n *facts.Node) *Finding {
	byConn := waiters(n)
	if len(byConn) == 0 {
		return nil
	}
	held := connection.Held(n)
	behind, ops := facts.NameCounts{}, facts.NameCounts{}
	cl := n.TapClaim(func(a account.Account) facts.StateTimes {
		times := held[a.Call.Conn].TimesWithin(a, func(s account.Segment) bool {
			return s.Actor == account.Server && s.State != account.AckWait || s.Actor == recording.Proxy ||
				s.State == account.Unexplained
		})
		if len(times) > 0 {
			behind[a.Call.Conn]++
			ops[a.Call.Op]++
		}
		return times
	})
	if !cl.Matters() {
		return nil
	}
	f := finding(n, cl)
	addr := behind.Top(1)[0]
	w := slices.MaxFunc(byConn[addr], func(a, b waiter) int { return cmp.Compare(a.ToNs-a.FromNs, b.ToNs-b.FromNs) })
	name := blockingName(w.Op)
	f.Title = name + " holds a connection that other calls share, and they wait until it is done"
	f.support(recording.SourceTap, float64(cl.Calls), "calls",
		"%s (%s) were sent on a connection that %s held, up to %s in one call",
		ofSlow(cl.Calls, n), ops.List(degree.Listed), name, format.Brief(cl.MaxNs))
	who := caller.ClientLabel(w.Client, w.Process)
	f.support(recording.SourceTap, float64(len(byConn[addr])), "commands",
		"%s on %s blocked %s, up to %s", w.Op, who, facts.TimesText(len(byConn[addr])), format.Brief(w.ToNs-w.FromNs))
	if free := callsElsewhere(n, held); free > 0 {
		f.support(recording.SourceTap, free, "calls",
			"meanwhile the server answered %s on other connections", counted(free, "call"))
	}
	switch kept, ok := n.Ledger.Path(n.Address, "kept"); {
	case !ok:
	case kept.P50Ns >= n.Ledger.ThresholdNs:
		f.doubt(recording.SourceProbe, float64(kept.P50Ns), "ns",
			"calls on their own connection are slow, too: half of the probe's take at least %s",
			format.Brief(kept.P50Ns))
	case degree.Several*kept.P99Ns < cl.MaxNs:
		f.support(recording.SourceProbe, float64(kept.P99Ns), "ns",
			"99 of 100 calls on the probe's own connection had their reply within %s", format.Brief(kept.P99Ns))
	}
	f.FixSteps = blockingFix(w, who)
	return f
}

// blockingName is how people write a blocking command.
func blockingName(op string) string {
	if strings.HasPrefix(op, "XREAD") {
		return op + " BLOCK"
	}
	return op
}

// callsElsewhere is about how many calls other connections had answered while some were held.
func callsElsewhere(n *facts.Node, held map[string]facts.Spans) (calls float64) {
	var all facts.Spans
	for _, c := range held {
		all = append(all, c...)
	}
	meanwhile := facts.MergeSpans(all)
	for _, c := range caller.Timelines(n) {
		if held[c.Client] != nil {
			continue
		}
		for s := range c.Steps() {
			calls += float64(s.Calls*meanwhile.OverlapNs(s.FromNs, s.ToNs)) / float64(max(s.ToNs-s.FromNs, 1))
		}
	}
	return calls
}

func blockingFix(w waiter, who string) []remedy.Step {
	own := inApplication("own-connection", "Give %s its own connection, not the one that %s shares "+
		"between callers", format.Name(w.Op), format.Name(who))
	if w.Op == "WAIT" || w.Op == "WAITAOF" {
		own.Text += ". WAIT belongs on the connection that wrote: take one from a pool, write and WAIT on it, then " +
			"return it"
		return []remedy.Step{own}
	}
	own.Text += ". Lettuce: a StatefulRedisConnection per blocking consumer; ioredis: redis.duplicate(); node-redis: " +
		"client.duplicate(); redis-py and go-redis: a pool with one extra connection per blocking consumer; rueidis " +
		"does it by itself (it has a pool for blocking commands)"
	return []remedy.Step{own, orElse(inApplication("without-blocking", "Do without blocking commands, which "+
		"StackExchange.Redis does not have for this reason: pub/sub as a signal with LPOP, or XREADGROUP without "+
		"BLOCK"))}
}
