package cause_test

import (
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// asking is a server that gets COMMAND for each call of the application, on a new connection.
func asking(server string, commands, gets, maps float64) edge {
	return newEdge(server).info(map[string]float64{
		"cmdstat_command.calls": commands, "cmdstat_command.usec": commands *
			190, "cmdstat_get.calls": gets, "cmdstat_get.usec": gets * 2,
		"cmdstat_cluster.calls": maps, "total_connections_received": commands, "total_commands_processed": commands +
			gets + maps,
	})
}

// brokenOff adds connections that their client reset.
func (e edge) brokenOff(count int) edge {
	for i := range count {
		e.event(recording.SourceTap, recording.KindClose, second+int64(i)*edgeMs, 0,
			recording.ConnDetail{
				Client: address(6000 + i), Side: recording.Server, AgeNs: edgeMs, Calls: 0, Waiting: 1,
				By: recording.Client, Reason: recording.CloseReset,
			})
	}
	return e
}

func TestCmdinfoOnceLock(t *testing.T) {
	explainEdge(t, find("cmdinfo-once-lock"), []edgeCase{
		{
			name: "T0: two for each call", rec: asking("redis 6.0.16", 600, 300, 0), found: true,
			evidence: "2 for each", against: "--pprof", fix: "v7.4.0",
		},
		{name: "T0: Redis 7", rec: asking("redis 7.0.15", 600, 600, 0), found: true, fix: "to v9"},
		{
			name: "T2: broken off", rec: asking("redis 6.0.16", 600, 300, 0).brokenOff(550), found: true,
			evidence: "RST",
		},
		{
			name: "T1: and a process is built with an old version", rec: asking("redis 6.0.16", 600, 300,
				0).built("go-redis", "6.15.9"), found: true, evidence: "built with go-redis 6.15.9",
			fix: "Upgrade go-redis 6.15.9 to v9",
		},
		{
			name: "T2: an application that calls once a second", rec: asking("redis 7.0.15", 10, 10, 0).brokenOff(10),
			found: true,
		},
		{
			name: "T2: INFO is refused", rec: newEdge("redis 7.0.15").allAt(recording.Server, "COMMAND", 300,
				4e5).allAt(recording.Server, "GET", 300, 2e3).brokenOff(290), found: true,
			evidence: "300 COMMANDs (30 per second)",
		},
		{
			name: "T2: INFO is refused, and COMMAND is asked once for each client",
			rec: newEdge("redis 7.0.15").allAt(recording.Server, "COMMAND", 30, 4e5).allAt(recording.Server, "GET",
				30_000, 2e3),
		},
		{name: "clients of a cluster that are made for each job", rec: asking("redis 6.0.16", 600, 600, 600)},
		{name: "once for each client", rec: asking("redis 6.0.16", 600, 60_000, 0)},
		{name: "COMMAND now and then", rec: asking("redis 6.0.16", 15, 5, 0)},
		{
			name: "on connections that stay",
			rec: newEdge("redis 6.0.16").info(map[string]float64{
				"cmdstat_command.calls": 600,
				"cmdstat_command.usec":  1e5, "cmdstat_get.calls": 300, "total_connections_received": 3,
			}),
		},
		{name: "a server without commandstats", rec: newEdge("redis 6.0.16")},
	})
}

func TestCmdinfoOnceLockInGoroutines(t *testing.T) {
	inLock := map[string]int64{v6Waits: 98, v6Holds: 1, webIdle: 300, v9Reply: 1}
	for name, tt := range map[string]struct {
		rec      edge
		found    bool
		evidence string
		fix      string
	}{
		"and commandstats": {
			asking("redis 6.0.16", 600, 300, 0).allAlong(inLock), true,
			"600 COMMANDs (60 per second)", "go-redis v6",
		},
		"alone: commandstats are " +
			"refused": {newEdge("redis 6.0.16").allAlong(inLock).mutexDelay(map[string]int64{
			v6Unlock:                           9e9,
			"main.main > sync.(*Mutex).Unlock": 1e9,
		}), true, "9 s of its mutex delay", "v7.4.0"},
		"counted": {
			newEdge("redis 7.0.15").allAlong(inLock), true,
			"98 of 100 goroutines in calls of go-redis", "to v9",
		},
		"once, when the client is made": {newEdge("redis 6.0.16").goroutines(0, inLock).goroutines(second,
			map[string]int64{v9Reply: 9}).goroutines(2*second, map[string]int64{v9Reply: 9}), false, "", ""},
		"goroutines that wait for a reply": {
			newEdge("redis 6.0.16").allAlong(map[string]int64{v9Reply: 100}), false,
			"", "",
		},
	} {
		tt.rec.Index()
		c := facts.New(tt.rec.Recording)
		f := cause.CommandLock(c, cause.ExplainCommandLoop(c.Nodes[0]))
		if (f != nil) != tt.found {
			t.Errorf("%s: found %v: %+v", name, f != nil, f)
			continue
		}
		if f == nil {
			continue
		}
		if len(f.Claims) != 1 || len(f.Claims[0].Losses) != 1 || f.Claims[0].Losses[0].Ns < 0.95*100*10e9 ||
			!strings.HasPrefix(texts(f.Evidence), recording.SourceProfile) {
			t.Errorf("%s: %+v", name, f)
		}
		holds(t, name, texts(f.Evidence), tt.evidence)
		holds(t, name, strings.Join(f.FixLines(), "\n"), tt.fix)
	}
}

// TestCommandLockComesFirst: that connections come and go, and that the server answers COMMAND, follows from it.
func TestCommandLockComesFirst(t *testing.T) {
	rec := asking("redis 6.0.16", 6000, 3000, 0).brokenOff(5500).allAlong(map[string]int64{v6Waits: 99, v6Holds: 1})
	rec.Index()
	d := verdict.Diagnose(rec.Recording, "test")
	if len(d.Findings) == 0 || d.Findings[0].Cause != "cmdinfo-once-lock" {
		t.Fatalf("%+v", d.Findings)
	}
	for _, f := range d.Findings[1:] {
		if f.Because != "cmdinfo-once-lock" {
			t.Errorf("%s because of %q", f.Cause, f.Because)
		}
	}
}

func TestPoolWaitInGoroutines(t *testing.T) {
	pool := func(e edge) edge {
		return e.all("GET", 3*400*9, 2375e3).used(app, "shop", 5000, 400, 0.98).used(app, "shop", 5001, 400,
			0.98).used(app, "shop", 5002, 400, 0.98)
	}
	for name, tt := range map[string]struct {
		rec   edge
		found bool
	}{
		"goroutines alone": {newEdge("redis 7.0.15").info(map[string]float64{
			"total_commands_processed": 1000,
		}).allAlong(map[string]int64{v9Pool: 27, v9Reply: 3}), true},
		"and the kernel": {pool(newEdge("redis 7.0.15")).allAlong(map[string]int64{v9Pool: 27, v9Reply: 3}), true},
		"as many workers as connections: nobody " +
			"waits": {pool(newEdge("redis 7.0.15")).allAlong(map[string]int64{v9Reply: 3}), false},
		"now and then one waits": {newEdge("redis 7.0.15").allAlong(map[string]int64{
			v9Pool:  1,
			v9Reply: 9,
		}), false},
		"another process calls, which was not profiled": {pool(newEdge("redis 7.0.15")).used(app+1, "other", 5003, 400,
			0.98).allAlong(map[string]int64{v9Reply: 3}), true},
	} {
		tt.rec.Index()
		d := verdict.Diagnose(tt.rec.Recording, "test")
		var f *cause.Finding
		for i := range d.Findings {
			if d.Findings[i].Cause == "pool-exhausted-wait" {
				f = &d.Findings[i]
			}
		}
		if (f != nil) != tt.found {
			t.Errorf("%s: found %v: %+v", name, f != nil, f)
		}
		if f != nil && len(f.FixLines()) == 0 {
			t.Errorf("%s: no fix", name)
		}
		if name == "goroutines alone" {
			holds(t, name, texts(f.Evidence), "27 wait at a time on average, and the servers carry out 100 commands "+
				"per second: each waits at least 270 ms (Little's law)")
		}
	}
}

// TestOwnFrames: a table of the user says what the frames of another library mean.
func TestOwnFrames(t *testing.T) {
	rec := newEdge("redis 7.0.15").allAlong(map[string]int64{
		"main.main > ours.(*Pool).Lease > sync.(*Mutex).Lock": 27,
		v9Reply: 3,
	})
	rec.Snapshot(recording.Snapshot{
		Source: recording.SourceProfile, Subject: recording.SubjectSelf,
		Name: recording.SnapshotFrames, Body: "ours\tpool-wait\tours\ta lease\tours.(*Pool).Lease\n",
	})
	rec.Index()
	w, ok := hosts.WorstWait(facts.New(rec.Recording), hosts.IsPoolWait)
	if !ok || w.Count != 27 || w.Calls != 30 || w.Meaning.Library != "ours" || !w.Lasting() {
		t.Errorf("%+v", w)
	}
}
