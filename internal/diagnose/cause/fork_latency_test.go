package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestForkLatency(t *testing.T) {
	forks := func(r loopCase, ns int64) loopCase {
		for _, s := range loopSeconds {
			r.server(s*1e9, ns, recording.KindFork, recording.ForkDetail{Why: "rdb", WindowNs: 1e9})
		}
		return r
	}
	checkLoop(t, "fork-latency", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1", forks(newLoopCase().busy(), loopStall), true, false},
		{"T1 with BGSAVE in SLOWLOG", forks(newLoopCase().busy(), loopStall).logged("BGSAVE", 1, 6), true, false},
		{"T0", forks(newLoopCase(), loopStall), true, false},
		{
			"T1 by CONFIG SET appendonly yes", forks(newLoopCase().busy(), loopStall).logged("CONFIG SET", 4, 30),
			true, false,
		},
		{"a quick fork", forks(newLoopCase().busy(), 1e6), false, false},
		{"the thread was throttled", forks(newLoopCase().hosted(recording.KindThrottled, ""), loopStall), false, false},
	})
}
