package cause_test

import (
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// TestLoopFixes: what is advised follows from what the server is set to, and from what it forked for.
func TestLoopFixes(t *testing.T) {
	const cli = "redis-cli -h 10.0.0.1 -p 6379 "
	forked := func(why string) loopCase {
		r := newLoopCase().busy()
		for _, s := range loopSeconds {
			r.server(s*1e9, loopStall, recording.KindFork, recording.ForkDetail{Why: why, WindowNs: 1e9})
		}
		return r
	}
	blocked := func(syscall, fsync string) loopCase {
		return aofCase(newLoopCase().hosted(recording.KindBlocked, syscall), fsync)
	}
	for _, tt := range []struct {
		name, ids     string
		rec           loopCase
		command, undo string // of the first step
	}{
		{
			"flush", "lazy-user-flush flush-async",
			newLoopCase().busy().logged("FLUSHDB", 1, 8).config("lazyfree-lazy-user-flush", "no"),
			cli + "CONFIG SET lazyfree-lazy-user-flush yes", cli + "CONFIG SET lazyfree-lazy-user-flush no",
		},
		{"flush before 6.2", "flush-async", newLoopCase().busy().logged("FLUSHDB", 1, 8), "", ""},
		{
			"SET over a big key", "lazy-server-del unlink",
			newLoopCase().busy().logged("SET", 3, 30).info("used_memory", 1e9, -60e6),
			cli + "CONFIG SET lazyfree-lazy-server-del yes", "",
		},
		{
			"fork for a snapshot of its own", "no-snapshots smaller-shards", forked("rdb").config("save", "900 1"),
			cli + "CONFIG SET save ''", cli + "CONFIG SET save '900 1'",
		},
		{
			"fork for BGSAVE", "snapshot-on-replica smaller-shards",
			forked("rdb").config("save", "900 1").counted("bgsave", 6, 60_000), "", "",
		},
		{
			"fork for a rewrite", "rewrite-aof-less smaller-shards",
			forked("aof-rewrite").config("auto-aof-rewrite-percentage", "150"),
			cli + "CONFIG SET auto-aof-rewrite-percentage 300", cli + "CONFIG SET auto-aof-rewrite-percentage 150",
		},
		{
			"fork for a replica", "larger-backlog smaller-shards",
			forked("replication").config("repl-backlog-size", "1048576").info("master_repl_offset", 0, 1e6),
			cli + "CONFIG SET repl-backlog-size 180000000", cli + "CONFIG SET repl-backlog-size 1048576",
		},
		{
			"fsync always", "fsync-each-second faster-disk", blocked("fdatasync", "always"),
			cli + "CONFIG SET appendfsync everysec", cli + "CONFIG SET appendfsync always",
		},
		{
			"a child writes", "no-fsync-while-saving faster-disk aof-on-replica",
			blocked("write", "everysec").info("rdb_bgsave_in_progress", 1, 0),
			cli + "CONFIG SET no-appendfsync-on-rewrite yes", "",
		},
	} {
		steps := tt.rec.diagnose().Findings[0].FixSteps
		checkSteps(t, tt.name, steps, tt.ids, tt.command, tt.undo)
	}
}

// TestEdgeFixes: the command is for this process and this version.
func TestEdgeFixes(t *testing.T) {
	const cli = "redis-cli -h 10.0.0.5 -p 6379 "
	full := func() edge {
		return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).
			info(map[string]float64{"rejected_connections": 100, "total_connections_received": 50}).
			level("server", "maxclients", 50)
	}
	process := map[string]any{"pid": 4711, "comm": "redis-server"}
	pauses := map[string]float64{"cmdstat_client|pause.calls": 10}
	const loop = `for i in 1 2 3 4 5; do nsenter -t 4711 -n ss -Kt state established '( sport = :6379 )' ` +
		`dst "$(nsenter -t 4711 -n ss -Htn state established '( sport = :6379 )' | awk 'NR == 1 { print $4 }')" ` +
		">/dev/null; " + cli + "CONFIG SET maxclients 10000 | grep OK && break; done"
	for _, tt := range []struct {
		name, cause, ids, command string
		rec                       edge
	}{
		{
			"enough files", "maxclients", "more-clients close-idle smaller-pool", loop,
			full().snapshot(recording.SourceHost, "process", process).level("host", "fd.limit", 100_000),
		},
		{
			"too few files", "maxclients", "more-clients close-idle smaller-pool",
			"prlimit --pid 4711 --nofile=10032:10032 && " + loop,
			full().snapshot(recording.SourceHost, "process", process).level("host", "fd.limit", 1024),
		},
		{
			"pauses", "client-pause-or-write-block", "forbid-command end-pause stop-pauses",
			cli + "ACL SETUSER <the user of your application> '-client|pause'", paused("redis 7.0.15").info(pauses),
		},
		{
			"pauses before ACL knew subcommands", "client-pause-or-write-block", "end-pause stop-pauses",
			cli + "CLIENT UNPAUSE", paused("redis 6.2.14").info(map[string]float64{
				"cmdstat_client.calls": 10, "cmdstat_client|pause.calls": 10,
			}),
		},
	} {
		tt.rec.Index()
		f := find(tt.cause).Explain(facts.New(tt.rec.Recording).Nodes[0])
		if f == nil {
			t.Errorf("%s: not found", tt.name)
			continue
		}
		checkSteps(t, tt.name, f.FixSteps, tt.ids, tt.command, "")
	}
}

// TestFrameworkFixes: what is advised for each framework is well formed, and ends in the ACL.
func TestFrameworkFixes(t *testing.T) {
	for name, steps := range cause.FrameworkFixes {
		for _, s := range steps {
			if err := s.Finish().Check(); err != nil || strings.HasSuffix(s.Text, ".") {
				t.Errorf("%s: %v, %s", name, err, s.Text)
			}
		}
	}
}

// checkSteps checks the ids of steps, that each is well formed, and the command and the undo of the first.
func checkSteps(t *testing.T, name string, steps []remedy.Step, want, command, undo string) {
	t.Helper()
	if got := ids(steps); got != want || len(steps) == 0 {
		t.Errorf("%s: steps %q, want %q", name, got, want)
		return
	}
	for _, s := range steps {
		if err := s.Finish().Check(); err != nil || strings.HasSuffix(s.Text, ".") {
			t.Errorf("%s: %v, %s", name, err, s.Text)
		}
	}
	if got := steps[0]; got.Command != command || undo != "" && got.Undo != undo {
		t.Errorf("%s: command\n%s\nwant\n%s\nundo %q, want %q", name, got.Command, command, got.Undo, undo)
	}
}

// ids are those of steps, in their order.
func ids(steps []remedy.Step) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return strings.Join(out, " ")
}
