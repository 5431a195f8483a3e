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
		{"absent", aofCase(newLoopCase().busy(), "everysec"), 0, 0},
		{"T1", aofCase(blocked, "always"), 0.95, 0},
		{"T1, CONFIG forbidden", newLoopCase().hosted(recording.KindBlocked, "fdatasync").info("aof_enabled", 1,
			0).info("aof_current_size", 1e6, 1e6), 0.9, 0},
		{"T0 by LATENCY", told(aofCase(newLoopCase(), "always"), "aof-fsync-always"), 0.85, 0},
		{"T0 alone", aofCase(newLoopCase(), "always"), 0.5, 0.7},
		{"everysec", aofCase(newLoopCase().hosted(recording.KindBlocked, "write"), "everysec"), 0, 0},
		{"no AOF", newLoopCase().hosted(recording.KindBlocked, "fdatasync").info("aof_enabled", 0,
			0).config("appendonly", "no", "appendfsync", "always"), 0, 0},
		{"a page fault", aofCase(newLoopCase().hosted(recording.KindBlocked, "page-fault"), "always"), 0, 0},
		{"and a slow command", aofCase(newLoopCase().busy().logged("KEYS", 2, 10), "always"), 0, 0},
	})
}

func TestAOFEverysecStall(t *testing.T) {
	checkLoop(t, "aof-everysec-stall", []loopWant{
		{"absent", aofCase(newLoopCase().busy(), "everysec"), 0, 0},
		{"T1", aofCase(newLoopCase().hosted(recording.KindBlocked, "write"), "everysec").info("aof_delayed_fsync", 0,
			1), 0.95, 0},
		{
			"T1, the counter has not risen yet", aofCase(newLoopCase().hosted(recording.KindBlocked, "write"),
				"everysec"),
			0.85, 0.95,
		},
		{"T0 by LATENCY", told(aofCase(newLoopCase(), "everysec"), "aof-write-pending-fsync").info("aof_delayed_fsync",
			0, 1), 0.8, 0.9},
		{"T0 by fsyncs that last", aofCase(newLoopCase(), "everysec").info("aof_pending_bio_fsync", 1, 0), 0.5, 0.6},
		{"T0 by the counter", aofCase(newLoopCase(), "everysec").info("aof_delayed_fsync", 0, 1), 0.6, 0.8},
		{"always", aofCase(newLoopCase().hosted(recording.KindBlocked, "fdatasync"), "always"), 0, 0},
		{"no AOF", newLoopCase().hosted(recording.KindBlocked, "write").info("aof_enabled", 0, 0), 0, 0},
	})
}
