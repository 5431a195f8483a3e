package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestSyncFreeOfBigKey(t *testing.T) {
	const fall = -60e6
	checkLoop(t, "sync-free-of-big-key", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1 DEL", newLoopCase().busy().logged("DEL", 2, 10).info("used_memory", 1e9, fall), true, false},
		{
			"T1 DEL, filled again at once", newLoopCase().busy().logged("DEL", 2, 10).info("used_memory", 1e9, 1e6),
			true, false,
		},
		{
			"T1 SET over a big one", newLoopCase().busy().logged("SET", 3, 30).info("used_memory", 1e9, fall), true,
			false,
		},
		{"T1 expiry of few keys", newLoopCase().busy().info("expire_cycle_cpu_milliseconds", 0, 60).info("expired_keys",
			0, 1).info("used_memory", 1e9, fall), true, false},
		{
			"T1 expiry on 5.0", newLoopCase().busy().info("expired_keys", 0, 1).info("used_memory", 1e9, fall), true,
			false,
		},
		{"T0 DEL", newLoopCase().logged("DEL", 2, 10).info("used_memory", 1e9, fall), true, false},
		{"T0 DEL without a fall", newLoopCase().logged("DEL", 2, 10), true, true},
		{"expiry in the background", newLoopCase().busy().info("expire_cycle_cpu_milliseconds", 0,
			60).info("expired_keys", 0, 1).config("lazyfree-lazy-expire", "yes"), false, false},
		{"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("DEL", 2, 10), false, false},
		{"a GET that was held up", newLoopCase().busy().logged("GET", 2, 10), false, false},
		{"many keys expire", newLoopCase().busy().info("expire_cycle_cpu_milliseconds", 0, 60).info("expired_keys", 0,
			5e4).info("used_memory", 1e9, -5e6), false, false},
	})
}

func TestSyncFreeFixFitsTheVersion(t *testing.T) {
	for server, want := range map[string]string{
		"redis 5.0.6": "unlink", "redis 6.0.16": "lazy-user-del unlink", "valkey 8.1.1": "lazy-user-del unlink",
	} {
		r := newLoopCase().busy().logged("DEL", 2, 10)
		r.SetMeta(recording.MetaServer, server)
		steps := r.diagnose().Findings[0].FixSteps
		if got := ids(steps); got != want {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
	}
}
