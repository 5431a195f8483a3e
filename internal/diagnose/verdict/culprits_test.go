package verdict_test

import (
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
)

// TestCulprits: what is wrong at a client is its own, and a server has its load from somebody.
func TestCulprits(t *testing.T) {
	for _, scenario := range []string{
		"accept-backlog-overflow", "aof-everysec-stall", "bandwidth-saturated", "client-cfs-throttled",
		"client-eventloop-blocked", "client-gc-pause", "handshake-extra-rtts",
		"hot-shard-or-hot-key", "main-thread-saturated", "pool-idle-reap-redial", "pool-maxidle-churn",
		"slow-command", "timeout-discard-churn",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			f := verdict.Diagnose(corpus.Open(t, scenario), "test").Findings[0]
			if f.Cause != scenario || len(f.Culprits) == 0 || f.Culprits[0].PID == 0 || f.Culprits[0].Text == "" {
				t.Errorf("%s: culprits %+v", f.Cause, f.Culprits)
			}
		})
	}
}
