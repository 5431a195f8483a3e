package caller_test

import (
	"reflect"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

// watched is a recording of one node with one CLIENT LIST, and values of counters at the begin and the end.
func watched(clients string, server, tap map[string]float64) *facts.Node {
	const node = "10.0.0.1:6379"
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
	rec.SetMeta(recording.MetaStart, "1000000000")
	rec.SetMeta(recording.MetaEnd, "11000000000")
	rec.Snapshot(recording.Snapshot{
		TimeNs: 2e9, Source: recording.SourceServer, Subject: node, Name: "clients", Body: clients,
	})
	for i, at := range []int64{1e9, 11e9} {
		for name, v := range server {
			rec.Sample(recording.Sample{
				TimeNs: at, Source: recording.SourceServer, Subject: node, Name: name, Value: v * float64(i),
			})
		}
		for name, v := range tap {
			rec.Sample(recording.Sample{
				TimeNs: at, Source: recording.SourceTap, Subject: recording.SubjectSelf, Name: "tap." + name,
				Value: v * float64(i),
			})
		}
	}
	rec.Index()
	return facts.New(rec).Nodes[0]
}

const (
	tcpClient  = `{"addr":"10.0.0.2:1000","flags":"N"}` + "\n"
	unixClient = `{"addr":"/run/redis.sock:0","flags":"U"}` + "\n"
	watcher    = `{"addr":"10.0.0.3:1000","name":"slowpath-watch","flags":"N","self":true}` + "\n"
	bench      = `{"addr":"10.0.0.3:2000","name":"slowpath-bench","flags":"N","self":true}` + "\n"
)

// TestUnixClients: how much of a node's commands came over Unix sockets: all that the tap did not see arrive; where
// commands ran others, or the tap did not see the server, by the number of clients.
func TestUnixClients(t *testing.T) {
	counted := map[string]float64{"calls.server": 190, "calls.own": 50, "calls.observer": 10}
	for name, tt := range map[string]struct {
		clients     string
		server, tap map[string]float64
		want        caller.UnixClients
	}{
		"none": {
			tcpClient + watcher, map[string]float64{"total_commands_processed": 1000}, counted, caller.UnixClients{},
		},
		"by commands": {
			tcpClient + unixClient + unixClient + watcher,
			map[string]float64{"total_commands_processed": 1000},
			counted,
			caller.UnixClients{Most: 2, Share: 0.75, ByCommands: true},
		},
		"scripts": {
			tcpClient + unixClient,
			map[string]float64{"total_commands_processed": 1000, "cmdstat_eval.calls": 1},
			counted,
			caller.UnixClients{Most: 1, Share: 0.5},
		},
		"no tap": {
			tcpClient + unixClient,
			map[string]float64{"total_commands_processed": 1000},
			nil,
			caller.UnixClients{Most: 1, Share: 0.5},
		},
	} {
		got := caller.UnixClientsOf(watched(tt.clients, tt.server, tt.tap))
		if got.Most > 0 && (len(got.Crowds) != 1 || got.Crowds[0].Connections != got.Most) {
			t.Errorf("%s: %+v", name, got.Crowds)
		}
		if got.Crowds = nil; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestOtherObservers: another slowpath is an observer, a load of slowpath is not; and the PINGs of an observer are not
// those of a pool.
func TestOtherObservers(t *testing.T) {
	pings := map[string]float64{"cmdstat_ping.calls": 200, "cmdstat_get.calls": 250, "total_commands_processed": 500}
	for name, tt := range map[string]struct {
		clients   string
		tap       map[string]float64
		observers int
		borrows   bool
	}{
		"users":            {tcpClient + watcher + bench, nil, 0, true},
		"another watch":    {tcpClient + watcher + watcher, nil, 1, false},
		"by another proxy": {tcpClient + watcher, map[string]float64{"calls.observer": 9}, 0, false},
	} {
		n := watched(tt.clients, pings, tt.tap)
		if got := caller.OtherObservers(n); got != tt.observers {
			t.Errorf("%s: %d observers, want %d", name, got, tt.observers)
		}
		if p, ok := connection.BorrowPings(n); ok != tt.borrows {
			t.Errorf("%s: tests of connections %v (%+v), want %v", name, ok, p, tt.borrows)
		}
	}
}
