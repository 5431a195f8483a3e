package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// proxyCPUBound: the thread of a proxy has no time to spare, and the servers behind it have.
var proxyCPUBound = Cause{
	ID:    "proxy-cpu-bound",
	Title: "The proxy's thread is busy all the time: calls queue for it",
	Layer: "network",
	Class: ServerStall,
	Needs: Needs{
		T0: "nothing of its own: a proxy has no INFO",
		T1: "the main thread of the proxy's process running or in the run queue all the time",
		T2: "the clients' own calls wait while the proxy passes on others; its calls to the servers are fast",
	},
	Mechanism: "A proxy reads and writes each call twice, and many have one thread (nutcracker, HAProxy with " +
		"nbthread 1). When that thread has work all the time, calls wait in its sockets, while the servers behind " +
		"it have time to spare.",
	RuledOut: "A thread of the proxy that sleeps for more than a tenth of the time, or that other processes keep " +
		"from the CPU",
	LookAlikes: []LookAlike{
		{"main-thread-saturated", "there the thread of the server is busy all the time, and what goes to it " +
			"directly waits as long"},
		{"server-cpu-contention", "there the thread of the proxy waits for a CPU that others have, and runs little " +
			"itself"},
	},
	Remedy: "More proxies, or more threads of the one; clients that find the server themselves; pipelines.",
	See: []string{
		"https://github.com/twitter/twemproxy/issues/539",
		"https://docs.haproxy.org/2.6/configuration.html#3.1-nbthread",
	},
	Explain: explainProxyCPU,
}

func explainProxyCPU(n *facts.Node) *Finding {
	d, ok := n.Demand()
	if !ok || !n.Ledger.IsProxy(n.Address) || d.Run < facts.SaturatedRun || d.Total() < facts.SaturatedDemand {
		return nil
	}
	if c := n.NeighbourCores(); c.Others > c.Callers &&
		d.Run+d.Wait*c.Callers/(c.Callers+c.Others) < facts.SaturatedDemand {
		return nil // without the other threads on its CPUs it would have time to spare
	}
	cl := n.InState(account.Busy)
	if cl.Ns == 0 {
		return nil
	}
	f := finding(n, cl)
	f.support(recording.SourceHost, d.Run, "of the time",
		"the main thread of %s ran %.0f %% of the time and was in the run queue for another %.0f %% "+
			"(/proc/PID/schedstat)", format.Name(n.Ledger.ProcessAt(n.Address)), d.Run*100, d.Wait*100)
	f.support(n.StateSource(), float64(cl.Calls), "calls",
		"%s waited while it passed on others, up to %s in one call", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	if d.Wait >= notableDoubt {
		f.doubt(recording.SourceHost, d.Wait, "of the time",
			"for %.0f %% of the time it was in the run queue: with its own CPU it would pass on more", d.Wait*100)
	}
	f.FixSteps = []remedy.Step{{
		ID: "more-proxies", Kind: remedy.Change,
		Text: "Start more proxies, or more threads of this one: nutcracker has one thread, HAProxy has nbthread, " +
			"Envoy --concurrency",
	}, {
		ID: "no-proxy", Kind: remedy.Change, Or: true, Restart: "the application",
		Text: "Let the clients find the server themselves (a cluster client, or sharding by the library): no proxy " +
			"is needed",
	}, {
		ID: "use-pipelines", Kind: remedy.Change, Or: true, Restart: "the application",
		Text: "Use pipelines: a proxy reads and writes once for many calls",
	}}
	return f
}
