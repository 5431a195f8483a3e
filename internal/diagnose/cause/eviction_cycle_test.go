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
		{"absent", newLoopCase().busy().info("evicted_keys", 0, 0), false, false},
		{"T1", full(newLoopCase().busy()), true, false},
		{"T0", full(newLoopCase()), true, false},
		{"T1 a lower maxmemory", full(newLoopCase().busy().logged("CONFIG SET", 4, 30)), true, false},
		{"far below maxmemory", newLoopCase().busy().info("evicted_keys", 0, 5e4).info("used_memory", 2e8,
			0).info("maxmemory", 1e9, 0).info("total_commands_processed", 0, 2000), true, true},
		{
			"a full server, each write evicts", newFullLoopCase().info("evicted_keys", 0,
				6e5).info("total_commands_processed", 0, 6e5).info("used_memory", 1e8, 0).info("maxmemory", 1e8, 0),
			true, false,
		},
		{
			"a full server, few writes evict", newFullLoopCase().info("evicted_keys", 0,
				6e3).info("total_commands_processed", 0, 6e5).info("used_memory", 1e8, 0).info("maxmemory", 1e8, 0),
			false, false,
		},
		{"the thread was throttled", full(newLoopCase().hosted(recording.KindThrottled, "")), false, false},
		{
			"a few evictions", newLoopCase().busy().info("evicted_keys", 0, 100).info("total_commands_processed", 0,
				2000),
			false, false,
		},
	})
}
