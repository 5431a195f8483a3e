package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/recording"
	"slowpath/internal/source/server"
)

func TestSlowCommandInSlowlogAndCommandstats(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		c := r.client()
		c.fill(200_000)
		c.do("CONFIG", "SET", "slowlog-log-slower-than", "2000")
		c.do("KEYS", "before*")
		w := watch(t, r.target())
		w.more(2)
		before := w.clock.Now()
		c.do("KEYS", "secret*")
		after := w.clock.Now()
		w.event(recording.KindSlowlog)
		rec := w.end()

		var keys []recording.Event
		for _, e := range rec.EventsOf(recording.SourceServer, node, recording.KindSlowlog) {
			if recording.DetailOf[recording.SlowlogDetail](e).Command == "KEYS" {
				keys = append(keys, e)
			}
		}
		if len(keys) != 1 {
			t.Fatalf("%d entries: %+v", len(keys), keys)
		}
		e, d := keys[0], recording.DetailOf[recording.SlowlogDetail](keys[0])
		if d.ArgCount != 2 || d.ArgBytes != int64(len("KEYS")+len("secret*")) || d.Client == "" ||
			strings.Contains(e.Detail, "secret") {
			t.Errorf("%+v", d)
		}
		if e.DurationNs < 2e6 || e.DurationNs > after-before {
			t.Errorf("it took %d ns, at most %d", e.DurationNs, after-before)
		}
		if e.TimeNs > after || e.TimeNs+d.WindowNs < before || d.WindowNs > 2e9 {
			t.Errorf("window %d+%d does not meet %d…%d", e.TimeNs, d.WindowNs, before, after)
		}
		calls, usec := series(rec, "cmdstat_keys.calls"), series(rec, "cmdstat_keys.usec")
		if calls.Growth() != 1 || int64(usec.Growth())*1000 > e.DurationNs+1e6 || len(usec.Steps()) != 1 {
			t.Fatalf("commandstats: %v %v", calls, usec)
		}
		if st := usec.Steps()[0]; st.FromNs > after || st.ToNs < before || st.ToNs-st.FromNs > int64(5*time.Second) {
			t.Errorf("step %+v does not meet %d…%d", st, before, after)
		}
	})
}

func TestCounterThatAppearsStartsAtZero(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	w := watch(t, r.target())
	w.more(3)
	c := r.client()
	for range 5 {
		c.do("LLEN", "x")
	}
	c.do("NOSUCHCOMMAND")
	w.more(2)
	rec := w.end()
	if g := series(rec, "cmdstat_llen.calls").Growth(); g != 5 {
		t.Errorf("llen grew by %v: %v", g, series(rec, "cmdstat_llen.calls"))
	}
	if g := series(rec, "errorstat_ERR.count").Growth(); g != 1 {
		t.Errorf("errors grew by %v", g)
	}
}

func TestEveryFieldHasItsEnds(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		w := watch(t, r.target())
		w.more(3)
		rec := w.end()
		polls := rec.EventsOf(recording.SourceServer, node, recording.KindPoll)
		last := polls[len(polls)-1]
		for _, name := range []string{
			"uptime_in_seconds", "connected_clients", "used_memory",
			"total_commands_processed", "used_cpu_user", "latest_fork_usec",
			"expired_time_cap_reached_count", "maxmemory", "tcp_port", "process_id", "rejected_connections",
			"instantaneous_ops_per_sec",
		} {
			s := series(rec, name)
			if len(s) < 2 || s[len(s)-1].TimeNs < last.TimeNs {
				t.Errorf("%s: %v", name, s)
			}
		}
		if n, _ := series(rec, "tcp_port").Last(); int(n) != r.port {
			t.Errorf("tcp_port %v", n)
		}
		if b := rec.EventsOf(recording.SourceServer, node, recording.KindBlindSpot); len(b) > 1 {
			t.Errorf("blind spots: %v", b) // LATENCY is off by default
		}
		if e := rec.EventsOf(recording.SourceServer, node, recording.KindError); len(e) > 0 {
			t.Errorf("errors: %v", e)
		}
	})
}

func TestSnapshots(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		c := r.client()
		c.do("CLIENT", "SETNAME", "app")
		c.do("CONFIG", "SET", "requirepass", "hunter2")
		to := r.target()
		to.Password = "hunter2"
		w := watch(t, to)
		w.more(2)
		rec := w.end()
		for _, s := range rec.Snapshots {
			if strings.Contains(s.Body, "hunter2") {
				t.Errorf("the password is in %s", s.Name)
			}
		}
		config := map[string]string{}
		text := map[string]string{}
		var counts server.ClientCounts
		memory := map[string]float64{}
		for name, into := range map[string]any{
			server.SnapshotConfig: &config, server.SnapshotInfo: &text,
			server.SnapshotClientCounts: &counts,
			server.SnapshotMemory:       &memory,
		} {
			s, ok := rec.SnapshotOf(recording.SourceServer, node, name)
			if !ok {
				t.Fatalf("no snapshot %s", name)
			}
			if err := json.Unmarshal([]byte(s.Body), into); err != nil {
				t.Fatal(name, err)
			}
		}
		for name, want := range map[string]string{
			"slowlog-log-slower-than": "10000", "hz": "10",
			"maxmemory-policy": "noeviction", "appendfsync": "everysec",
			"lazyfree-lazy-expire": config["lazyfree-lazy-expire"], "latency-monitor-threshold": "0",
			"cluster-enabled": config["cluster-enabled"], "save": "",
		} {
			if got, ok := config[name]; got != want || !ok && name != "cluster-enabled" {
				t.Errorf("%s is %q", name, got)
			}
		}
		if text["role"] != "master" || len(text["run_id"]) != 40 || text["maxmemory_policy"] != "noeviction" ||
			text["executable"] != "" {
			t.Errorf("info: %v", text)
		}
		if counts.Clients != 1 || counts.Self != 1 || counts.Host["127.0.0.1"] != 1 || counts.Flag["N"] != 1 {
			t.Errorf("%+v", counts)
		}
		if memory["peak.allocated"] == 0 || memory["keys.count"] != 0 {
			t.Errorf("%v", memory)
		}
		clients, _ := rec.SnapshotOf(recording.SourceServer, node, server.SnapshotClients)
		if lines := strings.Split(strings.TrimSpace(clients.Body), "\n"); len(lines) != 2 ||
			!strings.Contains(clients.Body, `"name":"app"`) ||
			!strings.Contains(clients.Body, `"self":true`) {
			t.Errorf("%s", clients.Body)
		}
	})
}

func TestForkIsSeen(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		c := r.client()
		c.fill(20_000)
		for _, tt := range []struct{ command, why string }{{"BGSAVE", "rdb"}, {"BGREWRITEAOF", "aof-rewrite"}} {
			w := watch(t, r.target())
			w.more(2)
			before := w.clock.Now()
			c.do(tt.command)
			after := w.clock.Now()
			e := w.event(recording.KindFork)
			d := recording.DetailOf[recording.ForkDetail](e)
			if d.Why != tt.why || e.DurationNs <= 0 || e.DurationNs > 1e9 || e.TimeNs > after ||
				e.TimeNs+d.WindowNs < before {
				t.Errorf("%s in %d…%d: %+v %+v", tt.command, before, after, e, d)
			}
			await.Until(t, "the child is done", func() bool {
				info := c.do("INFO", "persistence").Text()
				return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info,
					"aof_rewrite_in_progress:0")
			})
			w.more(2)
			if forks := w.end().EventsOf(recording.SourceServer, node, recording.KindFork); len(forks) != 1 {
				t.Errorf("%s: %d forks: %v", tt.command, len(forks), forks)
			}
		}
	})
}

func TestLatencyEvents(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		c := r.client()
		// the server is held up for a little on any busy machine
		c.do("CONFIG", "SET", "latency-monitor-threshold", "50")
		w := watch(t, r.target())
		w.more(1)
		from := w.clock.Now()
		c.do("EVAL", "local n = 0 for i = 1, 3e7 do n = n + i end return n", "0") // a few hundred milliseconds
		to := w.clock.Now()
		w.more(2)
		rec := w.end()
		events := rec.EventsOf(recording.SourceServer, node, recording.KindLatency)
		seen := map[string]bool{}
		for _, e := range events {
			d := recording.DetailOf[recording.LatencyDetail](e)
			key := e.Detail + time.Unix(0, e.TimeNs).String()
			if seen[key] {
				t.Errorf("twice: %+v", e)
			}
			seen[key] = true
			if e.TimeNs > to || e.TimeNs+d.WindowNs < from || e.DurationNs <= 0 {
				t.Errorf("%+v is not in %d…%d", e, from, to)
			}
			seen[d.Event] = true
		}
		if !seen["command"] {
			t.Errorf("no event \"command\": %v", events)
		}
	})
}

func TestRestart(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		c := r.client()
		for range 50 {
			c.do("PING")
		}
		w := watch(t, r.target())
		w.more(2)
		r.stop()
		e := w.event(recording.KindError)
		if d := recording.DetailOf[recording.ErrorDetail](e); d.Message == "" || d.Phase == "" {
			t.Errorf("%+v", d)
		}
		r.start()
		d := recording.DetailOf[server.RestartDetail](w.event(recording.KindRestart))
		if d.RunIDBefore == d.RunIDAfter || d.RunIDAfter == "" {
			t.Errorf("%+v", d)
		}
		c = r.client()
		for range 7 {
			c.do("PING")
		}
		w.more(2)
		if g := series(w.end(), "cmdstat_ping.calls").Growth(); g != 7 {
			t.Errorf("PING grew by %v", g)
		}
	})
}

func TestRoleChangeAndReset(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	w := watch(t, r.target())
	w.more(2)
	c := r.client()
	c.do("CONFIG", "RESETSTAT")
	w.event(server.KindStatsReset)
	c.do("REPLICAOF", "127.0.0.1", "1")
	want := server.RoleDetail{From: "master", To: "slave"}
	if d := recording.DetailOf[server.RoleDetail](w.event(recording.KindRoleChange)); d != want {
		t.Errorf("%+v", d)
	}
	rec := w.end()
	if s, _ := rec.SnapshotOf(recording.SourceServer, node, server.SnapshotInfo); !strings.Contains(s.Body,
		`"role":"slave"`) {
		t.Error(s.Body)
	}
	if n := len(rec.EventsOf(recording.SourceServer, node, recording.KindRestart)); n != 0 {
		t.Errorf("%d restarts", n)
	}
}

// TestOwnCommandsAreLeftOut: with a threshold of 0 SLOWLOG has every command, the watch's own too.
func TestOwnCommandsAreLeftOut(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		c := r.client()
		c.do("CONFIG", "SET", "slowlog-log-slower-than", "0")
		w := watch(t, r.target())
		w.more(3)
		c.do("OBJECT", "HELP")
		c.do("LPUSH", "private-key", strings.Repeat("v", 1000))
		w.more(2)
		rec := w.end()
		var got []string
		for _, e := range rec.EventsOf(recording.SourceServer, node, recording.KindSlowlog) {
			d := recording.DetailOf[recording.SlowlogDetail](e)
			got = append(got, d.Command)
			if strings.Contains(e.Detail, "private") || d.Command == "LPUSH" &&
				(d.ArgBytes != int64(len("LPUSH")+len("private-key"))+1000 || d.ArgCount != 3) {
				t.Errorf("%s", e.Detail)
			}
		}
		if strings.Join(got, ",") != "OBJECT HELP,LPUSH" {
			t.Errorf("%v", got)
		}
	})
}

func TestLoadingServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	c := r.client()
	c.fill(3000)
	c.do("SAVE")
	r.stop()
	r.args = []string{"--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"}
	r.start()
	w := watch(t, r.target())
	seen := func(want float64) func() bool {
		return func() bool {
			w.sink.mu.Lock()
			defer w.sink.mu.Unlock()
			n, any := series(w.sink.rec, "loading").Last()
			return any && n == want
		}
	}
	await.Until(t, "loading is seen", seen(1))
	r.client().do("CONFIG", "SET", "key-load-delay", "0")
	await.Until(t, "loading is seen to end", seen(0))
	w.more(1)
	rec := w.end()
	if _, ok := rec.SnapshotOf(recording.SourceServer, node, server.SnapshotConfig); !ok {
		t.Error("no settings")
	}
	if spots := blindSpots(t, rec); len(spots) != 1 { // LATENCY is off
		t.Error(spots)
	}
}

// TestRESP3 holds what is seen over RESP3, where replies are maps and verbatim strings, against RESP2.
func TestRESP3(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		if r.binary.Version < "6" {
			t.Skip("RESP3 came with 6.0")
		}
		var names [2][]string
		var bodies [2]map[string]int
		for i, protocol := range []int{2, 3} {
			to := r.target()
			to.Protocol = protocol
			w := watch(t, to)
			w.more(2)
			rec := w.end()
			for _, name := range rec.Names(recording.SourceServer, node, "") {
				// HELLO is counted too
				if !strings.Contains(name, "cmdstat_") && !strings.Contains(name, "percentiles") {
					names[i] = append(names[i], name)
				}
			}
			bodies[i] = map[string]int{}
			for _, s := range rec.Snapshots {
				bodies[i][s.Name] = strings.Count(s.Body, `":`)
			}
		}
		if a, b := fmt.Sprint(names[0]), fmt.Sprint(names[1]); a != b {
			t.Errorf("RESP2 %s\nRESP3 %s", a, b)
		}
		for _, name := range []string{server.SnapshotConfig, server.SnapshotInfo, server.SnapshotMemory} {
			if bodies[0][name] != bodies[1][name] || bodies[0][name] == 0 {
				t.Errorf("%s: %d parts by RESP2, %d by RESP3", name, bodies[0][name], bodies[1][name])
			}
		}
	})
}

// TestSettingsAreReadAgain: after a CONFIG SET the settings are read again before the watch ends, so that the recording
// has each change and about when it was.
func TestSettingsAreReadAgain(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		// On a busy machine a command seems to cost what it waits: this is no test of the budget.
		w := watch(t, r.target(), func(o *server.Options) { o.Budget = 1e3 })
		w.more(3)
		c := r.client()
		c.do("CONFIG", "SET", "slowlog-max-len", "77")
		w.more(3)
		c.do("CONFIG", "SET", "slowlog-max-len", "88")
		var got []string
		for _, s := range w.end().Snapshots {
			if s.Name != server.SnapshotConfig {
				continue
			}
			settings, _ := recording.BodyOf[map[string]string](s)
			got = append(got, settings["slowlog-max-len"])
		}
		if !slices.Equal(got, []string{"128", "77", "88"}) {
			t.Errorf("slowlog-max-len was read as %q", got)
		}
	})
}
