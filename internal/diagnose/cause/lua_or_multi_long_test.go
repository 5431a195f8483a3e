package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestLuaOrMultiLong(t *testing.T) {
	busyErrors := newLoopCase()
	for i := range int64(100) {
		at := 2e9 + i*50e6
		busyErrors.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "GET", Node: loopNode,
			IntendedNs: int64(at), StartNs: int64(at), EndNs: int64(at) + 1e5, Error: "BUSY",
		})
	}
	checkLoop(t, "lua-or-multi-long", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1 by SLOWLOG", newLoopCase().busy().logged("EVALSHA", 3, 40), true, false},
		{
			"T1 transaction of many", newLoopCase().busy().counted("exec", 1, 60_000).counted("hset", 20_000, 12_000),
			true, false,
		},
		{"T0 by SLOWLOG", newLoopCase().logged("FCALL", 3, 40), true, false},
		{"T0 by commandstats", newLoopCase().counted("eval", 1, 60_000), true, false},
		{"a command inside of it", newLoopCase().busy().logged("EVAL", 3, 40).logged("KEYS", 2, 10), true, false},
		{"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("EVAL", 3, 40), false, false},
		{
			"a transaction of one slow command", newLoopCase().busy().logged("KEYS", 2, 10).counted("exec", 1, 61_000),
			false, false,
		},
		{"BUSY", busyErrors, true, false},
	})
}
