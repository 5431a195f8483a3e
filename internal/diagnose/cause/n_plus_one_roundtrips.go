package cause

import (
	"fmt"

	"slowpath/internal/recording"
)

// nPlusOneRoundtrips: a caller asks for one thing after the other, and waits a round trip for each. No call is slow;
// what they are made for is. Catalogue A2.
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

func explainNPlusOne(n *Node) *Finding {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	if !ok || kept.Calls < floorCalls || kept.MinNs < tripNs || kept.P50Ns > floorSteady*kept.MinNs {
		return nil // not the path is what a call takes
	}
	work := n.probeWorkNs()
	if kept.MinNs < floorOfWork*work {
		return nil
	}
	var chains []lane
	var calls, waits, all int64
	sure, prompt := true, 1.0
	for _, c := range n.lanes() {
		k := c.chain(kept.MinNs)
		share, counted := c.promptShare()
		if k.calls == 0 || counted && share < dependent {
			continue
		}
		sure = sure && counted
		prompt = min(prompt, share)
		chains = append(chains, c)
		calls, waits, all = calls+k.calls, waits+k.inFlightNs, all+k.to-k.from
	}
	if len(chains) == 0 {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.58}
	f.ExcessShare = min(1, (1-1.0/chainCalls)*float64(waits)/inFlight(n.lanes()))
	who := tally{}
	for _, c := range chains {
		who[c.who()] = int(c.Calls)
	}
	f.support(recording.SourceTap, fmt.Sprintf("%d connections send %.0f calls per second each, one after the other, "+
		"and wait %.0f %% of the time for replies: %s", len(chains), float64(calls)/(float64(all)/1e9),
		100*float64(waits)/float64(all), who.list(3)), float64(calls), "calls")
	f.support(recording.SourceTap, fmt.Sprintf("a call takes %s on average; 100 in a row take %s, 100 in one MGET or "+
		"pipeline about %s", dur(waits/calls), dur(100*waits/calls), dur(waits/calls+100*work)), float64(waits/calls),
		"ns")
	f.support(recording.SourceProbe, fmt.Sprintf("the round trip takes at least %s: it is nearly all of each call",
		dur(kept.MinNs)), float64(kept.MinNs), "ns")
	if work > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the server works %s on such a call (commandstats)", dur(work)),
			float64(work), "ns")
	}
	if top := n.topCommand(); top.Calls > 0 && top.Calls >= float64(calls)/2 {
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
func (l lane) promptShare() (share float64, counted bool) {
	if len(l.use) == 0 || l.use[len(l.use)-1].prompt < 0 {
		return 0, false
	}
	last := l.use[len(l.use)-1]
	return float64(last.prompt) / float64(max(last.calls, 1)), true
}

// chain is the use of a connection if it had one call after the other under way, most of the time from its first to its
// last second.
func (l lane) chain(trip int64) (sum laneStep) {
	if len(l.steps) == 0 {
		return sum
	}
	sum.from, sum.to = l.steps[0].from, l.steps[len(l.steps)-1].to
	for _, s := range l.steps {
		sum.calls, sum.inFlightNs, sum.idleNs = sum.calls+s.calls, sum.inFlightNs+s.inFlightNs, sum.idleNs+s.idleNs
	}
	all := float64(sum.inFlightNs + sum.idleNs)
	each := float64(sum.inFlightNs) / float64(max(sum.calls, 1))
	if float64(sum.inFlightNs) < mostlyWaits*all || float64(sum.calls) < chainCalls*float64(sum.to-sum.from)/1e9 ||
		each < oneAtATime*float64(trip) || each > notQueueing*float64(trip) {
		return laneStep{}
	}
	return sum
}
