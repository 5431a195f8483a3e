package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestFlushSync(t *testing.T) {
	checkLoop(t, "flush-sync", []loopWant{
		{"absent", newLoopCase().busy(), 0, 0},
		{"T1", newLoopCase().busy().logged("FLUSHALL", 1, 8).config("lazyfree-lazy-user-flush", "no"), 0.95, 0},
		{"T1 in a transaction", newLoopCase().busy().logged("FLUSHDB", 1, 8).counted("exec", 1, 60_100), 0.95, 0},
		{"T0", newLoopCase().logged("FLUSHDB", 1, 8), 0.85, 0.9},
		{"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("FLUSHDB", 1, 8), 0, 0},
		{"another command", newLoopCase().busy().logged("KEYS", 2, 10), 0, 0},
	})
}
