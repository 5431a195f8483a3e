package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

// aofCase is a server with an append-only file that grows.
func aofCase(r loopCase, fsync string) loopCase {
	return r.info("aof_enabled", 1, 0).info("aof_current_size", 1e6, 1e6).config("appendonly", "yes", "appendfsync",
		fsync)
}

func told(r loopCase, event string) loopCase {
	for _, s := range loopSeconds {
		r.server(s*1e9, loopStall, recording.KindLatency, recording.LatencyDetail{Event: event, WindowNs: 1e9})
	}
	return r
}

func TestAOFFsyncAlways(t *testing.T) {
	blocked := newLoopCase().hosted(recording.KindBlocked, "fdatasync")
	checkLoop(t, "aof-fsync-always", []loopWant{
		{"absent", aofCase(newLoopCase().busy(), "everysec"), false, false},
		{"T1", aofCase(blocked, "always"), true, false},
		{"T1, CONFIG forbidden", newLoopCase().hosted(recording.KindBlocked, "fdatasync").info("aof_enabled", 1,
			0).info("aof_current_size", 1e6, 1e6), true, false},
		{"T0 by LATENCY", told(aofCase(newLoopCase(), "always"), "aof-fsync-always"), true, false},
		{"T0 alone", aofCase(newLoopCase(), "always"), true, false},
		{"everysec", aofCase(newLoopCase().hosted(recording.KindBlocked, "write"), "everysec"), false, false},
		{"no AOF", newLoopCase().hosted(recording.KindBlocked, "fdatasync").info("aof_enabled", 0,
			0).config("appendonly", "no", "appendfsync", "always"), false, false},
		{"a page fault", aofCase(newLoopCase().hosted(recording.KindBlocked, "page-fault"), "always"), false, false},
		{"and a slow command", aofCase(newLoopCase().busy().logged("KEYS", 2, 10), "always"), false, false},
	})
}

func TestAOFEverysecStall(t *testing.T) {
	checkLoop(t, "aof-everysec-stall", []loopWant{
		{"absent", aofCase(newLoopCase().busy(), "everysec"), false, false},
		{"T1", aofCase(newLoopCase().hosted(recording.KindBlocked, "write"), "everysec").info("aof_delayed_fsync", 0,
			1), true, false},
		{
			"T1, the counter has not risen yet", aofCase(newLoopCase().hosted(recording.KindBlocked, "write"),
				"everysec"),
			true, false,
		},
		{"T0 by LATENCY", told(aofCase(newLoopCase(), "everysec"), "aof-write-pending-fsync").info("aof_delayed_fsync",
			0, 1), true, false},
		{"T0 by fsyncs that last", aofCase(newLoopCase(), "everysec").info("aof_pending_bio_fsync", 1, 0), true, true},
		{"T0 by the counter", aofCase(newLoopCase(), "everysec").info("aof_delayed_fsync", 0, 1), true, false},
		{"always", aofCase(newLoopCase().hosted(recording.KindBlocked, "fdatasync"), "always"), false, false},
		{"no AOF", newLoopCase().hosted(recording.KindBlocked, "write").info("aof_enabled", 0, 0), false, false},
	})
}
