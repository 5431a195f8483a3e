package verdict_test

import (
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// TestCallers: who calls, with which library, and whose calls were slow. Servers and proxies among the nodes are none,
// and a slow call whose process is not known is the caller's that has its connection.
func TestCallers(t *testing.T) {
	for scenario, want := range map[string]verdict.Caller{ // the one that lost most
		"hot-shard-or-hot-key": {
			Name: "rueidis", Processes: 1, PID: 10484, Library: "rueidis 1.0.79", SlowCalls: 880,
		},
		"lb-hop": {Name: "go-redis-v9", Processes: 1, PID: 10627, SlowCalls: 1301},
		// not a node
		"fanout-slowest-shard-twemproxy": {Name: "nutcracker", Processes: 1, PID: 10727, SlowCalls: 80},
		"dial-herd-or-serialised-dial": {
			Name: "go-redis-v9", Processes: 5, Library: "go-redis 9.23.0", SlowCalls: 253, ClientNames: "orders",
		},
		"server-cfs-throttled": {Name: "sp.grade", Processes: 1, PID: 32357, SlowCalls: 811},
	} {
		d := verdict.Diagnose(corpus.Open(t, scenario), "test")
		if len(d.Callers) == 0 {
			t.Errorf("%s: no caller", scenario)
			continue
		}
		got := d.Callers[0]
		if got.Calls <= int64(got.SlowCalls) || got.Calls > int64(d.Populations[0].Calls) || got.LostNs <= 0 {
			t.Errorf("%s: %+v of %+v", scenario, got, d.Populations[0])
		}
		got.Calls, got.LostNs = 0, 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", scenario, got, want)
		}
		slow := 0
		for _, c := range d.Callers {
			if slow += c.SlowCalls; c.Calls == 0 && c.SlowCalls == 0 {
				t.Errorf("%s: %+v does not call", scenario, c)
			}
		}
		if slow > d.Populations[0].RecordedSlowCalls {
			t.Errorf("%s: %d slow calls of %d", scenario, slow, d.Populations[0].RecordedSlowCalls)
		}
	}
	rec := corpus.Open(t, "server-cfs-throttled")
	rec.Snapshot(recording.Snapshot{
		Source: recording.SourceTap, Subject: recording.ProcessPrefix + "32357", Name: recording.SnapshotProgram,
		Body: recording.Detail(recording.Program{
			Comm: "sp.grade", Name: "flood.py", User: "app", Unit: "flood.service",
		}),
	})
	got := verdict.Diagnose(rec, "test").Callers[0]
	if got.Name != "flood.py" || got.PID != 32357 || got.User != "app" || got.Unit != "flood.service" {
		t.Errorf("%+v of a process whose program is known", got)
	}
	rec = corpus.Open(t, "lb-hop").Without(recording.SourceTap)
	if d := verdict.Diagnose(rec, "test"); len(d.Callers) != 0 {
		t.Errorf("without the tap: %+v", d.Callers)
	}
}
