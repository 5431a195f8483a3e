package server

import (
	"slowpath/internal/recording"
)

// changes compares each INFO with the one before it: restarts, changes of role, forks, resets of the counters.
type changes struct {
	sink    recording.Sink
	subject string
	have    bool
	prev    info
	at      pollTime
}

// add compares an INFO with the one before, and reports whether the server was restarted between them.
func (c *changes) add(at pollTime, in info) (restarted bool) {
	prev, before, have := c.prev, c.at, c.have
	c.prev, c.at, c.have = in, at, true
	if !have {
		return false
	}
	if isRestart(prev, in) {
		up := int64(in.numbers["uptime_in_seconds"])
		c.event(at.done-up*1e9, 0, recording.KindRestart, RestartDetail{prev.text["run_id"], in.text["run_id"], up})
		return true
	}
	if from, to := prev.text["role"], in.text["role"]; from != "" && to != "" && from != to {
		c.event(at.done, 0, recording.KindRoleChange, RoleDetail{from, to})
	}
	if isReset(prev, in) {
		c.event(at.done, 0, KindStatsReset, struct{}{})
		return false // counters that fell must not be taken for events
	}
	if forked(prev, in) {
		c.event(before.sent, int64(in.numbers["latest_fork_usec"])*1000, recording.KindFork,
			recording.ForkDetail{Why: forkReason(prev, in), WindowNs: at.done - before.sent})
	}
	return false
}

func (c *changes) event(timeNs, durationNs int64, kind string, detail any) {
	c.sink.Event(recording.Event{
		TimeNs: timeNs, DurationNs: durationNs, Source: source, Subject: c.subject, Kind: kind,
		Detail: recording.Detail(detail),
	})
}

func isRestart(prev, in info) bool {
	a, b := prev.text["run_id"], in.text["run_id"]
	if a != "" && b != "" {
		return a != b
	}
	return fell(prev, in, "uptime_in_seconds")
}

// isReset reports a CONFIG RESETSTAT. Counters that only rise have fallen, without a restart. On a busy server some
// have passed their old value again, but hardly the calls of INFO, most of which are those of slowpath.
func isReset(prev, in info) bool {
	for _, name := range []string{
		"total_commands_processed", "total_connections_received", "total_net_input_bytes",
		"cmdstat_info.calls",
	} {
		if fell(prev, in, name) {
			return true
		}
	}
	return false
}

func fell(prev, in info, name string) bool {
	a, ok1 := prev.numbers[name]
	b, ok2 := in.numbers[name]
	return ok1 && ok2 && b < a
}

func rose(prev, in info, name string) bool { return in.numbers[name] > prev.numbers[name] }

func changed(prev, in info, name string) bool { return in.numbers[name] != prev.numbers[name] }

// forked reports whether the server has forked between two polls. From 6.2 it counts its forks. Before, a fork
// changes latest_fork_usec, which seldom repeats to the microsecond, or a child runs now, or has run between the polls.
// SAVE does not fork, but sets the time of the last save, too.
func forked(prev, in info) bool {
	if _, counted := in.numbers["total_forks"]; counted {
		return rose(prev, in, "total_forks")
	}
	return changed(prev, in, "latest_fork_usec") || rose(prev, in, "rdb_bgsave_in_progress") || rose(prev, in,
		"aof_rewrite_in_progress") ||
		saved(prev, in) && !rose(prev, in, "cmdstat_save.calls")
}

// saved reports that a save has begun and ended between two polls.
func saved(prev, in info) bool {
	return prev.numbers["rdb_bgsave_in_progress"] == 0 && rose(prev, in, "rdb_last_save_time")
}

// forkReason says what the child is for. A full resync forks too, to write the RDB for the replica.
func forkReason(prev, in info) string {
	switch {
	case rose(prev, in, "sync_full"):
		return "replication"
	case rose(prev, in, "rdb_bgsave_in_progress"), saved(prev, in):
		return "rdb"
	case rose(prev, in, "aof_rewrite_in_progress"), rose(prev, in, "aof_rewrites"),
		rose(prev, in, "cmdstat_bgrewriteaof.calls"):
		return "aof-rewrite"
	// begun and ended in the second of the save before
	case rose(prev, in, "rdb_saves"), rose(prev, in, "cmdstat_bgsave.calls"):
		return "rdb"
	case rose(prev, in, "module_fork_in_progress"):
		return "module"
	}
	return ""
}

// configured reports whether somebody may have changed settings between two polls: by a CONFIG SET, or where the server
// counts all subcommands of CONFIG together (before 7.0), by one that slowpath did not send. own is how many CONFIG GET
// it has sent between the two.
func configured(prev, in info, own int) bool {
	if _, apart := in.numbers["cmdstat_config|get.calls"]; apart {
		return changed(prev, in, "cmdstat_config|set.calls")
	}
	return in.numbers["cmdstat_config.calls"] > prev.numbers["cmdstat_config.calls"]+float64(own)
}
