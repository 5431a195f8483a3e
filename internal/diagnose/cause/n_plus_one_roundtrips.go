package cause

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// nPlusOneRoundtrips: a caller asks for one key after the other, and waits a round trip for each. No single call is
// slow; the request that needs them all is.
var nPlusOneRoundtrips = Cause{
	ID: "n-plus-one-roundtrips",
	// callers that wait for a connection send right away, too
	After:   []string{"pool-exhausted-wait", "pool-test-on-borrow", "bandwidth-saturated"},
	Explain: explainNPlusOne,
}

func explainNPlusOne(n *facts.Node) *Finding {
	if f := explainChains(n); f != nil {
		return f
	}
	kept, ok := n.Ledger.Path(n.Address, "kept")
	// Below a millisecond, in one data centre or on one host, a busy connection proves nothing: a pool that hands out
	// the last one used keeps one busy however independent the requests are.
	if !ok || kept.Calls < floorCalls || kept.MinNs < floorNs || kept.P50Ns > 2*kept.MinNs {
		return nil // the path is not most of a call's time
	}
	work := mainthread.ProbeWorkNs(n)
	if kept.MinNs < floorOfWork*work || hosts.PathQueueOf(n).ConnectNs > 0 {
		return nil // or its round trips were shorter once: fewer do not make its queue shorter
	}
	var chains []caller.ConnTimeline
	var calls, waits, all int64
	sure, prompt := true, 1.0
	for _, c := range caller.Timelines(n) {
		share, counted := promptShare(c)
		least := degree.Most
		if counted { // a caller that works for most of the time between its chains has them, too
			least = facts.MinShare
		}
		k := chain(c, kept.MinNs, least)
		if k.Calls == 0 || counted && share < degree.NearlyAll || caller.InTurns(n, c.PID(), c.Conn) {
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
	f := &Finding{Of: n.Ledger.Calls()}
	avoidable := (1 - 1.0/degree.Many) * float64(waits)
	f.lose(n, facts.LostInCalls, avoidable, 0)
	who := facts.NameCounts{}
	for _, c := range chains {
		who[c.Label()] = int(c.Calls)
	}
	f.support(recording.SourceTap, float64(calls), "calls", "%s with %.0f calls per second each, one after the other, "+
		"waiting %.0f %% of the time for replies: %s", counted(len(chains), "connection"),
		float64(calls)/(float64(all)/1e9), 100*float64(waits)/float64(all), who.List(3))
	f.support(recording.SourceTap, float64(waits/calls), "ns",
		"a call takes %s on average; 100 in a row take %s, 100 in one MGET or pipeline about %s",
		format.Brief(waits/calls), format.Brief(100*waits/calls), format.Brief(waits/calls+100*work))
	f.support(recording.SourceProbe, float64(kept.MinNs), "ns",
		"the round trip takes at least %s: it is nearly all of each call", format.Brief(kept.MinNs))
	if work > 0 {
		f.support(recording.SourceServer, float64(work), "ns",
			"the server works %s on such a call (commandstats)", format.Brief(work))
	}
	if top := mainthread.TopCommand(n); top.Calls > 0 && top.Calls >= float64(calls)/2 {
		f.support(recording.SourceServer, top.Calls, "calls", "most of them are %s: %.0f calls", top.Name, top.Calls)
	}
	if sure {
		f.support(recording.SourceTap, prompt, "of the calls", "at least %.0f %% of their calls are sent right after "+
			"the reply before: each waits for the one before", 100*prompt)
	} else {
		f.weaken(1)
	}
	f.doubt(recording.SourceTap, 0, "", "that the calls of a connection belong together is inferred from their pace: "+
		"a pool that always hands out the same connection looks the same")
	f.adviseBatches(true)
	return f
}

// explainChains finds requests that consist of many calls, each of which was seen.
func explainChains(n *facts.Node) *Finding {
	k := caller.ChainsOf(n)
	if k.Count == 0 {
		return nil
	}
	each, length := k.Ns/k.Count, k.Calls/k.Count
	avoidable := float64(k.Ns-k.WorkNs) * (1 - float64(k.Count)/float64(k.Calls))
	f := &Finding{Of: n.Ledger.Calls(), Grade: Inferred, Samples: int(k.Count)}
	f.lose(n, facts.LostWaiting, avoidable, int64(avoidable)/k.Count)
	f.support(recording.SourceTap, float64(k.Count), "times",
		"%s: %d calls of %s one after the other on a connection, each right after the reply before (%s), on average",
		facts.TimesText(int(k.Count)), length, k.Ops.List(2), caller.CallerNames(k.Callers))
	f.support(recording.SourceTap, float64(each), "ns", "together they take %s, %s each; no single one need be slow",
		format.Brief(each), format.Brief(k.Ns/k.Calls))
	if top := k.Ops.Top(1); len(top) > 0 && caller.Walks[top[0]] {
		f.Title = "A walk of the keyspace with SCAN asks for few keys at a time: thousands of round trips add up"
		f.support(recording.SourceServer, float64(k.WorkNs/k.Calls), "ns",
			"the server works %s for each of them: the rest is the way", format.Brief(k.WorkNs/k.Calls))
		f.FixSteps = walkFix(n)
		return f
	}
	f.doubt(recording.SourceTap, 0, "", "that one request needs them all is inferred from their pace")
	f.blameLoads(n, k.Callers...)
	f.adviseBatches(k.Ns/k.Calls >= floorNs)
	return f
}

// walkFix: how many elements a call looks at is the caller's choice.
func walkFix(n *facts.Node) []remedy.Step {
	steps := offered(n, remedy.LongerScans, nil, "Ask for more per call: COUNT 1000; 10 is the default")
	return append(steps, orElse(inApplication("no-keyspace-walk", "Keep the names of the keys that belong together in "+
		"a set, or their values in one hash, and walk nothing")))
}

// adviseBatches sets the fix; far: the distance to the server is most of a call.
func (f *Finding) adviseBatches(far bool) {
	f.FixSteps = []remedy.Step{
		inApplication("batch-calls", "Ask for all keys at once: MGET, HMGET, a pipeline, or a Lua script where one "+
			"answer decides the next request"),
		orElse(inApplication("auto-pipelining", "With many small callers, let the library batch their calls: rueidis "+
			"does (auto-pipelining), ioredis enableAutoPipelining: true, Lettuce setAutoFlushCommands(false) with "+
			"flushCommands(), go-redis >= 9.22 AutoPipeline() (experimental), StackExchange.Redis by Task.WhenAll")),
	}
	if far {
		f.FixSteps = append(f.FixSteps, change("closer-to-server", "Move the caller closer to the server, or cache "+
			"what it reads (CLIENT TRACKING): each round trip less is one wait less"))
	}
}

// promptShare is the share of a connection's calls that were sent right after the reply before.
func promptShare(l caller.ConnTimeline) (share float64, counted bool) {
	last, ok := l.LastSample()
	if !ok || last.Prompt < 0 {
		return 0, false
	}
	return float64(last.Prompt) / float64(max(last.Calls, 1)), true
}

// chain is the use of a connection if it had one call after the other in flight, for at least a share of the time from
// its first to its last second.
func chain(l caller.ConnTimeline, trip int64, least float64) (sum caller.TimelineStep) {
	for s := range l.Steps() {
		if sum.ToNs == 0 {
			sum.FromNs = s.FromNs
		}
		sum.ToNs = s.ToNs
		sum.Calls, sum.InFlightNs, sum.IdleNs = sum.Calls+s.Calls, sum.InFlightNs+s.InFlightNs, sum.IdleNs+s.IdleNs
	}
	all := float64(sum.InFlightNs + sum.IdleNs)
	each := float64(sum.InFlightNs) / float64(max(sum.Calls, 1))
	overlap, queue := each < degree.NearlyAll*float64(trip), float64(trip) < degree.Most*each
	if float64(sum.InFlightNs) < least*all || overlap || queue ||
		float64(sum.Calls) < degree.Many*float64(sum.ToNs-sum.FromNs)/1e9 {
		return caller.TimelineStep{}
	}
	return sum
}
