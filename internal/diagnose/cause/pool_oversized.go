package cause

import (
	"fmt"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolOversized: a process calls on many times as many connections as the server can use. Its calls are queued at the
// server instead of in the pool, and each connection costs both ends context switches, buffers and event-loop
// iterations.
var poolOversized = Cause{
	ID:      "pool-oversized",
	Options: []remedy.Topic{remedy.SmallerPool},
	Explain: explainOversizedPool,
}

func explainOversizedPool(n *facts.Node) *Finding {
	d, ok := mainthread.DemandOf(n)
	alone := aloneNs(n, d)
	kept, known := n.Ledger.Path(n.Address, "kept")
	if !ok || !known || alone == 0 || d.Total() < facts.SaturatedDemand ||
		mainthread.LongWorkShare(n) >= minOtherWorkShare*d.Run || kept.P50Ns < 2*alone {
		return nil
	}
	if c := mainthread.NeighbourCoresOf(n); c.Others > c.Callers &&
		d.Run+d.Wait*c.Callers/(c.Callers+c.Others) < facts.SaturatedDemand {
		return nil // without the other threads on its CPUs there would be no queue
	}
	var worst connection.PoolUse
	var queued float64
	for _, c := range caller.Callers(n) {
		u, ok := connection.PoolUseOf(n, c)
		if !ok {
			continue
		}
		under := u.CallsPerSecond * float64(u.CallNs) / 1e9
		if len(u.Used) < minOversizedConns || mainthread.ClientTools[c.Comm] || under < minOversizedQueue ||
			float64(u.CallNs) < degree.Many*float64(alone) {
			continue
		}
		queued += under
		if worst.Caller == nil || len(u.Used) > len(worst.Used) {
			worst = u
		}
	}
	if worst.Caller == nil {
		return nil
	}
	under := worst.CallsPerSecond * float64(worst.CallNs) / 1e9
	needed := max(2*worst.CallsPerSecond*float64(alone)/1e9, degree.Many) // with room for bursts
	waits := 1 - needed/max(under, needed)
	f := &Finding{Of: n.Ledger.Calls()}
	f.lose(n, facts.LostInCalls, queued*waits*n.Seconds()*1e9, int64(waits*float64(worst.CallNs)))
	f.support(recording.SourceTap, under, "calls",
		"%s has %d connections in use, with %.0f calls in flight at a time: %s calls per second of %s each",
		worst.Name, len(worst.Used), under, format.Rounded(worst.CallsPerSecond), format.Brief(worst.CallNs))
	f.support(recording.SourceProbe, float64(alone), "ns",
		"a call that waits for no other takes %s: %s in flight at a time are enough for as many per second",
		format.Brief(alone), format.Rounded(worst.CallsPerSecond*float64(alone)/1e9))
	f.supportDemand(n, d)
	f.doubt(recording.SourceServer, 0, "", "callers that want more than the server's thread can give wait in any "+
		"case; in the pool they cost the server nothing")
	size := int(needed + 0.5)
	f.FixSteps = append(offered(n, remedy.SmallerPool, remedy.Values{"connections": size},
		fmt.Sprintf("A smaller pool of %d keeps the server as busy; raise it step by step while calls per second rise "+
			"(slowpath bench --sweep finds the best number)", size), worst.Caller), inApplication("batch-calls",
		"Send several commands at a time (pipelines, MGET), or multiplex (Lettuce, rueidis): fewer event-loop "+
			"iterations for the same work"))
	return f
}

// aloneNs is what a call takes that waits for no other: a round trip, as the kernels alone make it on connect, and the
// main thread's average work per call. Where hundreds are queued not even the fastest call is alone.
func aloneNs(n *facts.Node, d mainthread.Demand) int64 {
	fresh, ok := n.Ledger.Path(n.Address, "fresh")
	ops := mainthread.CommandsPerSecond(n)
	if !ok || fresh.ConnectMinNs == 0 || ops <= 0 {
		return 0
	}
	return fresh.ConnectMinNs + int64(d.Run*1e9/ops)
}
