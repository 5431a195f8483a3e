package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestActiveExpireCycle(t *testing.T) {
	many := func(r loopCase) loopCase {
		return r.info("expired_keys", 0, 2e5).info("expired_time_cap_reached_count", 0, 10).info("hz", 10, 0)
	}
	latency := many(newLoopCase())
	for _, s := range loopSeconds {
		latency.server(s*1e9, 60e6, recording.KindLatency, recording.LatencyDetail{
			Event:    "expire-cycle",
			WindowNs: 1e9,
		})
	}
	checkLoop(t, "active-expire-cycle", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1", many(newLoopCase().busy()).info("expire_cycle_cpu_milliseconds", 0, 250), true, false},
		{"T1 on 5.0", many(newLoopCase().busy()), true, false},
		{"T0", many(newLoopCase()).info("expire_cycle_cpu_milliseconds", 0, 250), true, false},
		{"T0 by LATENCY", latency, true, false},
		{
			"keys expire, the thread was throttled", many(newLoopCase().hosted(recording.KindThrottled, "")), false,
			false,
		},
		{"keys expire, cheaply", newLoopCase().busy().info("expired_keys", 0, 5e3).info("expire_cycle_cpu_milliseconds",
			0, 0), false, false},
		{
			"fields of hashes, hardly a key", newLoopCase().busy().info("expired_keys", 0, 3).
				info("expired_subkeys", 0, 1e6).info("expired_time_cap_reached_count", 0, 10).
				info("expire_cycle_cpu_milliseconds", 0, 250), true, false,
		},
		{
			"fields by Valkey's name", newLoopCase().info("expired_fields", 0, 1e6).
				info("expired_time_cap_reached_count", 0, 10).info("expire_cycle_cpu_milliseconds", 0, 250), true,
			false,
		},
		{
			"one big key", newLoopCase().busy().info("expired_keys", 0, 1).info("expire_cycle_cpu_milliseconds", 0, 60),
			false, false,
		},
	})
}
