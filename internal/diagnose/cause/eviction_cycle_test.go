package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestEvictionCycle(t *testing.T) {
	full := func(r loopCase) loopCase {
		return r.info("evicted_keys", 0, 5e4).info("total_commands_processed", 0, 2000).info("used_memory", 1e9,
			0).info("maxmemory", 1e9, 0)
	}
	checkLoop(t, "eviction-cycle", []loopWant{
		{"absent", newLoopCase().busy().info("evicted_keys", 0, 0), 0, 0},
		{"T1", full(newLoopCase().busy()), 0.9, 0},
		{"T0", full(newLoopCase()), 0.75, 0.9},
		{"T1 a lower maxmemory", full(newLoopCase().busy().logged("CONFIG SET", 4, 30)), 0.9, 0},
		{"far below maxmemory", newLoopCase().busy().info("evicted_keys", 0, 5e4).info("used_memory", 2e8,
			0).info("maxmemory", 1e9, 0).info("total_commands_processed", 0, 2000), 0.4, 0.5},
		{
			"a full server, each write evicts", newFullLoopCase().info("evicted_keys", 0,
				6e5).info("total_commands_processed", 0, 6e5).info("used_memory", 1e8, 0).info("maxmemory", 1e8, 0),
			0.8,
			0,
		},
		{"a full server, few writes evict", newFullLoopCase().info("evicted_keys", 0,
			6e3).info("total_commands_processed", 0, 6e5).info("used_memory", 1e8, 0).info("maxmemory", 1e8, 0), 0, 0},
		{"the thread was throttled", full(newLoopCase().hosted(recording.KindThrottled, "")), 0, 0},
		{
			"a few evictions", newLoopCase().busy().info("evicted_keys", 0, 100).info("total_commands_processed", 0,
				2000),
			0, 0,
		},
	})
}
