package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestFlushSync(t *testing.T) {
	checkLoop(t, "flush-sync", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1", newLoopCase().busy().logged("FLUSHALL", 1, 8).config("lazyfree-lazy-user-flush", "no"), true, false},
		{"T1 in a transaction", newLoopCase().busy().logged("FLUSHDB", 1, 8).counted("exec", 1, 60_100), true, false},
		{"T0", newLoopCase().logged("FLUSHDB", 1, 8), true, false},
		{"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("FLUSHDB", 1, 8), false, false},
		{"another command", newLoopCase().busy().logged("KEYS", 2, 10), false, false},
	})
}
