package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestEventLoopBlocked(t *testing.T) {
	const pipe = "write to its standard output, a pipe that fluentd[4120] reads"
	checkLoop(t, "event-loop-blocked", []loopWant{
		{"T1, a pipe", newLoopCase().hosted(recording.KindBlocked, pipe), 0.95, 0},
		{
			"T1, a pipe and an append-only file", aofCase(newLoopCase().hosted(recording.KindBlocked, pipe), "always"),
			0.95, 0,
		},
		{"T1, a child", newLoopCase().hosted(recording.KindBlocked, "wait4"), 0.95, 0},
		{"T1, a file without AOF", newLoopCase().hosted(recording.KindBlocked, "write of redis.log on vda"), 0.95, 0},
		{"T2, a child", newLoopCase().blocked("wait4", ""), 0.95, 0},
		{"T2, a file that is not known", newLoopCase().blocked("write", ""), 0, 0},
		{"the append-only file", aofCase(newLoopCase().hosted(recording.KindBlocked, "fdatasync"), "always"), 0, 0},
		{"a missing page", newLoopCase().hosted(recording.KindBlocked, "page-fault"), 0, 0},
		{"T2, a missing page", newLoopCase().blocked("page fault", ""), 0, 0},
		{"a fork", newLoopCase().hosted(recording.KindBlocked, "clone"), 0, 0},
		{"stopped", newLoopCase().hosted(recording.KindFrozen, ""), 0, 0},
		{"busy", newLoopCase().busy(), 0, 0},
		{"nothing known", newLoopCase(), 0, 0},
	})
}
