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
		{"absent", newLoopCase().busy(), 0, 0},
		{"T1", forks(newLoopCase().busy(), loopStall), 0.95, 0},
		{"T1 with BGSAVE in SLOWLOG", forks(newLoopCase().busy(), loopStall).logged("BGSAVE", 1, 6), 0.95, 0},
		{"T0", forks(newLoopCase(), loopStall), 0.8, 0.9},
		{
			"T1 by CONFIG SET appendonly yes", forks(newLoopCase().busy(), loopStall).logged("CONFIG SET", 4, 30), 0.95,
			0,
		},
		{"a quick fork", forks(newLoopCase().busy(), 1e6), 0, 0},
		{"the thread was throttled", forks(newLoopCase().hosted(recording.KindThrottled, ""), loopStall), 0, 0},
	})
}
