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
	Mechanism: "Callers ask for about as much as one core can do. Each command is cheap, but calls queue for " +
		"the thread, and the queue grows without bound as its use comes near 100 %.",
	RuledOut: "A main thread with idle time, throttling, or one command or job that holds it",
	LookAlikes: []LookAlike{
		{"server-cfs-throttled", "there the thread is stopped; here it runs all the time"},
		{"hot-shard-or-hot-key", "there the other nodes of the cluster have time to spare"},
		{"slow-command", "there single commands take long"},
	},
	Remedy: "More shards or replicas for reads, I/O threads, pipelines, fewer or cheaper commands; the command " +
		"that takes most of the time comes first.",
	// What burns the thread's time without serving calls comes first.
	See: []string{
		"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/",
		"https://redis.io/docs/latest/develop/use/pipelining/",
	},
	Changes: []string{"call rate"},
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
