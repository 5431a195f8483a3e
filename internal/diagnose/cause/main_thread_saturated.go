package cause

import "slowpath/internal/diagnose/facts"

// mainThreadSaturated: the callers ask for as much as one core can give, and every call is queued.
var mainThreadSaturated = Cause{
	ID:      "main-thread-saturated",
	Class:   ServerStall,
	Changes: []string{"call rate"},
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
