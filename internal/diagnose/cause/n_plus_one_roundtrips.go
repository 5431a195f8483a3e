package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// nPlusOneRoundtrips: a caller asks for one thing after the other, and waits a round trip for each. No call is slow;
// what they are made for is.
var nPlusOneRoundtrips = Cause{
	ID: "n-plus-one-roundtrips",
	Title: "Callers ask for one key after the other and wait a round trip for each: the calls are fast, what needs " +
		"hundreds of them is not",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: the calls of others are not seen",
		T2: "connections with a call under way most of the time, one at a time and hundreds per second, each sent " +
			"right after the reply before, on a path whose round trip is nearly all of each call",
	},
	// callers that wait for a connection send at once, too
	After:   []string{"pool-exhausted-wait", "pool-test-on-borrow"},
	Explain: explainNPlusOne,
}

// Bounds of a chain of round trips. Below a millisecond, in one data centre or on one host, a busy connection is just
// that: a pool that hands out the last one used keeps one busy however independent the requests are.
const (
	tripNs      = floorNs
	mostlyWaits = 0.5 // of the time: its caller waits more than it works
	chainCalls  = 10  // per second: dependent calls that a request may well make
	oneAtATime  = 0.7 // of the path's round trip that a call takes at least, where calls do not overlap
	notQueueing = 2.0 // times the round trip that a call takes at most
	dependent   = 0.8 // of the calls are sent right after the reply before: it is waited for
)

func explainNPlusOne(n *facts.Node) *Finding {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	if !ok || kept.Calls < floorCalls || kept.MinNs < tripNs || kept.P50Ns > floorSteady*kept.MinNs {
		return nil // not the path is what a call takes
	}
	work := n.ProbeWorkNs()
	if kept.MinNs < floorOfWork*work {
		return nil
	}
	var chains []facts.ConnTimeline
	var calls, waits, all int64
	sure, prompt := true, 1.0
	for _, c := range n.Timelines() {
		k := chain(c, kept.MinNs)
		share, counted := promptShare(c)
		if k.Calls == 0 || counted && share < dependent {
			continue
		}
		sure = sure && counted
		prompt = min(prompt, share)
		chains = append(chains, c)
		calls, waits, all = calls+k.Calls, waits+k.InFlightNs, all+k.ToNs-k.FromNs
	}
	if len(chains) == 0 {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.58}
	f.ExcessShare = min(1, (1-1.0/chainCalls)*float64(waits)/facts.TotalInFlightNs(n.Timelines()))
	who := facts.NameCounts{}
	for _, c := range chains {
		who[c.Label()] = int(c.Calls)
	}
	f.support(recording.SourceTap, fmt.Sprintf("%d connections send %.0f calls per second each, one after the other, "+
		"and wait %.0f %% of the time for replies: %s", len(chains), float64(calls)/(float64(all)/1e9),
		100*float64(waits)/float64(all), who.List(3)), float64(calls), "calls")
	f.support(recording.SourceTap, fmt.Sprintf("a call takes %s on average; 100 in a row take %s, 100 in one MGET or "+
		"pipeline about %s", facts.Dur(waits/calls), facts.Dur(100*waits/calls), facts.Dur(waits/calls+100*work)),
		float64(waits/calls),
		"ns")
	f.support(recording.SourceProbe, fmt.Sprintf("the round trip takes at least %s: it is nearly all of each call",
		facts.Dur(kept.MinNs)), float64(kept.MinNs), "ns")
	if work > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the server works %s on such a call (commandstats)",
			facts.Dur(work)),
			float64(work), "ns")
	}
	if top := n.TopCommand(); top.Calls > 0 && top.Calls >= float64(calls)/2 {
		f.support(recording.SourceServer, fmt.Sprintf("most of them are %s: %.0f calls", top.Name, top.Calls),
			top.Calls, "calls")
	}
	if sure {
		f.Confidence = 0.85
		f.support(recording.SourceTap, fmt.Sprintf("%.0f %% of their calls and more are sent right after the reply "+
			"before came: each waits for the one before", 100*prompt), prompt, "of the calls")
	}
	f.doubt(recording.SourceTap, "that the calls of a connection belong together is inferred from their pace: a pool "+
		"that always hands out the same connection looks alike", 0, "")
	f.Fix = []string{
		"Ask for all keys at once: MGET, HMGET, a pipeline, or a Lua script where one answer decides the next " +
			"question.",
		"Where callers are many and small, let the library join their calls: rueidis does (auto-pipelining), ioredis " +
			"enableAutoPipelining: true, Lettuce setAutoFlushCommands(false) with flushCommands(), go-redis >= 9.22 " +
			"AutoPipeline() (experimental), StackExchange.Redis by Task.WhenAll.",
		"Bring the caller nearer to the server, or keep what it reads (CLIENT TRACKING): each round trip less is one " +
			"wait less.",
	}
	f.See = []string{
		"https://redis.io/docs/latest/develop/use/pipelining/",
		"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/#latency-induced-by-network-and-communication",
	}
	return f
}

// promptShare is how many of a connection's calls were sent right after the reply before.
func promptShare(l facts.ConnTimeline) (share float64, counted bool) {
	if len(l.Samples) == 0 || l.Samples[len(l.Samples)-1].BackToBack < 0 {
		return 0, false
	}
	last := l.Samples[len(l.Samples)-1]
	return float64(last.BackToBack) / float64(max(last.Calls, 1)), true
}

// chain is the use of a connection if it had one call after the other under way, most of the time from its first to its
// last second.
func chain(l facts.ConnTimeline, trip int64) (sum facts.TimelineStep) {
	if len(l.Steps) == 0 {
		return sum
	}
	sum.FromNs, sum.ToNs = l.Steps[0].FromNs, l.Steps[len(l.Steps)-1].ToNs
	for _, s := range l.Steps {
		sum.Calls, sum.InFlightNs, sum.IdleNs = sum.Calls+s.Calls, sum.InFlightNs+s.InFlightNs, sum.IdleNs+s.IdleNs
	}
	all := float64(sum.InFlightNs + sum.IdleNs)
	each := float64(sum.InFlightNs) / float64(max(sum.Calls, 1))
	if float64(sum.InFlightNs) < mostlyWaits*all || float64(sum.Calls) < chainCalls*float64(sum.ToNs-sum.FromNs)/1e9 ||
		each < oneAtATime*float64(trip) || each > notQueueing*float64(trip) {
		return facts.TimelineStep{}
	}
	return sum
}
