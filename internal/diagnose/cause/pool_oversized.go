package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// poolOversized: a process calls on many times as many connections as the server can have use for: its calls wait in
// line at the server instead of in the pool, and each connection costs both ends switches, buffers and turns of their
// loops.
var poolOversized = Cause{
	ID: "pool-oversized",
	Title: "The client's pool is far too large: hundreds of its calls are queued at the server at a time, where a " +
		"few tens do the same work",
	Layer: "client",
	Needs: Needs{
		T0: "nothing sure: whose calls are queued is not seen",
		T1: "the main thread with work all of the time",
		T2: "hundreds of connections of one process with a call in flight most of the time, each of which takes many " +
			"times what it takes alone",
	},
	Explain: explainOversizedPool,
}

// Bounds of a pool that is too large.
const (
	oversizedTimes = 10.0 // as many calls under way as are needed for the same calls per second
	roomForBursts  = 2.0
	poolUsual      = 10 // connections that any pool may have
)

func explainOversizedPool(n *facts.Node) *Finding {
	d, ok := n.Demand()
	alone := aloneNs(n, d)
	kept, known := n.Ledger.Path(n.Address, "kept")
	if !ok || !known || alone == 0 || d.Total() < facts.SaturatedDemand ||
		n.LongWorkShare() >= minOtherWorkShare*d.Run ||
		kept.P50Ns < 2*alone {
		return nil
	}
	if c := n.NeighbourCores(); c.Others > c.Callers &&
		d.Run+d.Wait*c.Callers/(c.Callers+c.Others) < facts.SaturatedDemand {
		return nil // without the strangers on its CPUs there would be no line
	}
	var worst facts.PoolUse
	var line, all float64
	for _, c := range n.Callers() {
		u, ok := n.PoolUseOf(c)
		if !ok {
			continue
		}
		under := u.CallsPerSecond * float64(u.CallNs) / 1e9
		all += under
		if len(u.Used) < minOversizedConns || facts.ClientTools[c.Comm] || under < minOversizedQueue ||
			float64(u.CallNs) < oversizedTimes*float64(alone) {
			continue
		}
		line += under
		if worst.Caller == nil || len(u.Used) > len(worst.Used) {
			worst = u
		}
	}
	if worst.Caller == nil {
		return nil
	}
	under := worst.CallsPerSecond * float64(worst.CallNs) / 1e9
	needed := max(roomForBursts*worst.CallsPerSecond*float64(alone)/1e9, poolUsual)
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.85, ExcessShare: line / max(all, 1) *
		(1 - needed/max(under, needed))}
	f.support(recording.SourceTap, fmt.Sprintf("%s has %d connections in use, and %.0f calls under way on them at a "+
		"time: %.3g calls per second of %s each", worst.Name, len(worst.Used), under, worst.CallsPerSecond,
		facts.Dur(worst.CallNs)),
		under, "calls")
	f.support(recording.SourceProbe, fmt.Sprintf("a call that waits for nobody takes %s: %.2g under way at a time "+
		"would do for as many per second", facts.Dur(alone), worst.CallsPerSecond*float64(alone)/1e9), float64(alone),
		"ns")
	f.supportDemand(n, d)
	f.support(recording.SourceTap, fmt.Sprintf("each connection makes %.3g calls per second",
		worst.CallsPerSecond/float64(len(worst.Used))), worst.CallsPerSecond/float64(len(worst.Used)), "per second")
	f.doubt(recording.SourceServer, "callers that want more than the server's thread can give wait in any case, in "+
		"the pool then, where they cost the server nothing", 0, "")
	size := int(needed + 0.5)
	f.Fix = append([]string{fmt.Sprintf("Make the pool smaller: %d connections keep the server as busy (raise it "+
		"step by step while calls per second rise: slowpath bench --sweep finds the best number)", size)},
		remedy.For(n, remedy.SmallerPool, remedy.Values{"connections": size})...)
	f.Fix = append(f.Fix, "Send several commands at a time (pipelines, MGET), or multiplex (Lettuce, rueidis): fewer "+
		"turns of the server's loop for the same work")
	f.See = []string{
		"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/",
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
	}
	return f
}

// aloneNs is what a call takes that waits for nobody: a round trip, as the kernels alone make it when they connect, and
// what the main thread works on a call on average. Where hundreds are queued not even the fastest call is alone.
func aloneNs(n *facts.Node, d facts.Demand) int64 {
	fresh, ok := n.Ledger.Path(n.Address, "fresh")
	ops := n.CommandsPerSecond()
	if !ok || fresh.ConnectMinNs == 0 || ops <= 0 {
		return 0
	}
	return fresh.ConnectMinNs + int64(d.Run*1e9/ops)
}
