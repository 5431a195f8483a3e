package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// proxyCPUBound: the thread of a proxy has no time to spare, and the servers behind it have.
var proxyCPUBound = Cause{
	ID:      "proxy-cpu-bound",
	Class:   ServerStall,
	Explain: explainProxyCPU,
}

func explainProxyCPU(n *facts.Node) *Finding {
	d, ok := mainthread.DemandOf(n)
	if !ok || !n.Ledger.IsProxy(n.Address) || d.Run < facts.SaturatedRun || d.Total() < facts.SaturatedDemand {
		return nil
	}
	if c := mainthread.NeighbourCoresOf(n); c.Others > c.Callers &&
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
	f.support(mainthread.StateSource(n), float64(cl.Calls), "calls",
		"%s waited while it passed on others, up to %s in one call", ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
	f.FixSteps = []remedy.Step{
		change("more-proxies", "Start more proxies, or more threads of this one: nutcracker has one thread, HAProxy "+
			"has nbthread, Envoy --concurrency"),
		orElse(inApplication("no-proxy", "Let the clients find the server themselves (a cluster client, or sharding "+
			"by the library): no proxy is needed")),
		orElse(inApplication("use-pipelines", "Use pipelines: a proxy reads and writes once for many calls")),
	}
	return f
}
