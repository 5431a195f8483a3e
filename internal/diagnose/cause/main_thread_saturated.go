package cause

import "slowpath/internal/diagnose/facts"

// mainThreadSaturated: the callers ask for as much as one core can give, and every call is queued.
var mainThreadSaturated = Cause{
	ID:    "main-thread-saturated",
	Title: "The main thread is busy all the time: calls queue for it",
	Layer: "server",
	Class: ServerStall,
	Needs: Needs{
		T0: "used_cpu_*_main_thread (or eventloop_duration_sum) near one core, cheap commands, and " +
			"calls that take several times their service time",
		T1: "the main thread running or in the run queue all the time, without throttling",
		T2: "the clients' own calls wait while it serves others, none of which takes long",
	},
	// What burns the thread's time without serving calls comes first.
	After: []string{
		"hot-shard-or-hot-key", "short-lived-connections", "tls-handshake-storm", "cmdinfo-once-lock",
		"io-threads-oversubscribed", "many-clients-overhead", "eviction-cycle", "introspection-load",
		"topology-refresh-storm", "moved-refresh-storm",
		"pool-oversized",
	},
	Explain: explainSaturated,
}

func explainSaturated(n *facts.Node) *Finding {
	if n.Ledger.IsProxy(n.Address) {
		return nil // no server
	}
	return saturation(n)
}
