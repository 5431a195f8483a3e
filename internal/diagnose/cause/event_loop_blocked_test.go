package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestEventLoopBlocked(t *testing.T) {
	const pipe = "write to its standard output, a pipe that fluentd[4120] reads"
	checkLoop(t, "event-loop-blocked", []loopWant{
		{"T1, a pipe", newLoopCase().hosted(recording.KindBlocked, pipe), true, false},
		{
			"T1, a pipe and an append-only file", aofCase(newLoopCase().hosted(recording.KindBlocked, pipe), "always"),
			true, false,
		},
		{"T1, a child", newLoopCase().hosted(recording.KindBlocked, "wait4"), true, false},
		{
			"T1, a file without AOF", newLoopCase().hosted(recording.KindBlocked, "write of redis.log on vda"), true,
			false,
		},
		{"T2, a child", newLoopCase().blocked("wait4", ""), true, false},
		{"T2, a file that is not known", newLoopCase().blocked("write", ""), false, false},
		{
			"the append-only file", aofCase(newLoopCase().hosted(recording.KindBlocked, "fdatasync"), "always"), false,
			false,
		},
		{"a missing page", newLoopCase().hosted(recording.KindBlocked, "page-fault"), false, false},
		{"T2, a missing page", newLoopCase().blocked("page fault", ""), false, false},
		{"a fork", newLoopCase().hosted(recording.KindBlocked, "clone"), false, false},
		{"stopped", newLoopCase().hosted(recording.KindFrozen, ""), false, false},
		{"busy", newLoopCase().busy(), false, false},
		{"nothing known", newLoopCase(), false, false},
	})
}
