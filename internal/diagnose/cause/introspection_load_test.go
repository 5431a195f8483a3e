package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestIntrospectionLoad(t *testing.T) {
	monitor := `{"id":3,"addr":"10.0.0.9:1","flags":"O","cmd":"monitor","age":60}`
	checkLoop(t, "introspection-load", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1 by SLOWLOG", newLoopCase().busy().logged("MEMORY USAGE", 5, 30), true, false},
		{"T1 many short ones", newLoopCase().busy().counted("info", 3000, 300_000), true, false},
		{"T1 MONITOR", newLoopCase().busy().clients(monitor,
			monitor[:8]+"4"+monitor[9:]).info("total_commands_processed", 0, 3e5), true, false},
		{"a full server, INFO each 50 µs", newFullLoopCase().counted("info", 12_000, 600_000), true, false},
		{
			"a full server, with MONITOR", newFullLoopCase().clients(monitor).info("total_commands_processed", 0, 4e5),
			true, false,
		},
		{"a full server, one exporter", newFullLoopCase().counted("info", 1, 100).info("total_commands_processed", 0,
			4e5), false, false},
		{"T0 by SLOWLOG", newLoopCase().logged("CLIENT LIST", 2, 10), true, false},
		{"the watch's own INFO, held up", newLoopCase().hosted(recording.KindThrottled, "").polls().counted("info", 1,
			60_000), false, false},
		{
			"many MONITOR, by the writes that answer no read",
			newLoopCase().busy().clients(monitor).info("total_commands_processed", 0, 8000).
				info("total_reads_processed", 0, 8000).info("total_writes_processed", 0, 350_000).
				info("used_cpu_sys", 0, 2).info("used_cpu_user", 0, 0.5), true, false,
		},
		{
			"MONITOR on a quiet server", newLoopCase().busy().clients(monitor).info("total_commands_processed", 0, 100),
			false, false,
		},
		{"CONFIG SET", newLoopCase().busy().logged("CONFIG SET", 4, 30), false, false},
	})
}

// polls are the polls of the server source.
func (r loopCase) polls() loopCase {
	for s := range int64(11) {
		r.server(s*1e9-2e6, 2e6, recording.KindPoll, struct{}{})
	}
	return r
}
