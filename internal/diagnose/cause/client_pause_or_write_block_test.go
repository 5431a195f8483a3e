package cause_test

import (
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// paused is a server that lets nothing through for 400 ms of each second.
func paused(server string) edge {
	e := newEdge(server)
	for i := range int64(200) {
		at := i * 50 * edgeMs
		ns := edgeMs / 10
		if left := 400*edgeMs - at%(1000*edgeMs); left > 0 && at%(1000*edgeMs) > 0 {
			ns += left
		}
		e.call("kept", at, ns)
		if i%10 == 3 {
			e.freshCall(at+edgeMs, edgeMs/10, ns)
		}
	}
	return e
}

func TestClientPause(t *testing.T) {
	asleep := func(e edge) edge { return e.mainThread(0.02, 0.01) }
	counted := map[string]float64{"cmdstat_client|pause.calls": 10}
	explainEdge(t, find("client-pause-or-write-block"), []edgeCase{
		{
			name: "T0: counted since 7.0", rec: paused("redis 7.0.15").info(counted), found: true,
			evidence: "CLIENT PAUSE was called 10 times", fix: "CLIENT UNPAUSE",
		},
		{
			name: "T1: and the event loop ran", rec: asleep(paused("redis 7.0.15").info(counted)), found: true,
			evidence: "the event loop ran",
		},
		{
			name: "T1: an old server does not count", rec: asleep(paused("redis 5.0.6")), found: true,
			evidence: "no call on any connection got through", against: "has no count of CLIENT PAUSE",
			fix: "CLIENT PAUSE 0",
		},
		{
			name: "T1: retransmissions elsewhere in the namespace",
			rec: asleep(paused("redis 5.0.6")).host(map[string]float64{
				"net.RetransSegs":    10,
				"sock.retrans_total": 0,
			}),
			found: true,
		},
		{
			name: "T1: retransmissions of its own connections",
			rec: asleep(paused("redis 5.0.6")).host(map[string]float64{
				"net.RetransSegs":    10,
				"sock.retrans_total": 10,
			}),
		},
		{
			name: "T1: a server that counts it, and was not told to pause",
			rec:  asleep(paused("redis 7.0.15").info(map[string]float64{"cmdstat_info.calls": 10})),
		},
		{
			name: "T1: it was told before the watch",
			rec: asleep(paused("redis 7.0.15").info(map[string]float64{"cmdstat_info.calls": 10}).level(
				recording.SourceServer, "cmdstat_client|pause.calls", 1)),
			found: true,
		},
		{name: "T0: an old server", rec: paused("redis 5.0.6")},
		{
			name: "T0: an old server that was sent CLIENT commands",
			rec:  paused("redis 5.0.6").info(map[string]float64{"cmdstat_client.calls": 32}), found: true,
			doubted: true, evidence: "about 12 CLIENT commands",
		},
		{
			name: "T0: an old server, slowpath's own CLIENT commands",
			rec:  paused("redis 5.0.6").info(map[string]float64{"cmdstat_client.calls": 20}),
		},
		{name: "T1: the thread was busy", rec: paused("redis 5.0.6").mainThread(0.9, 0.05)},
		{name: "T1: one connection waits alone", rec: asleep(newEdge("redis 5.0.6").kept(edgeMs/10, 210*edgeMs,
			20).fresh(edgeMs/10, edgeMs/10))},
		{
			name: "T1: asleep, and the event loop did not run",
			rec: paused("redis 5.0.6").host(map[string]float64{
				"main.run_ns": 1e8, "main.delay_ns": 0,
				"main.voluntary_switches": 3,
			}),
		},
		{name: "T1: no room for the probe", rec: asleep(paused("redis 5.0.6")).event(recording.SourceProbe,
			recording.KindError, 0, 0, recording.ErrorDetail{Message: "maxclients is reached"})},
	})
}

func TestWriteBlock(t *testing.T) {
	well := func(server string) edge { return newEdge(server).kept(edgeMs/10, 0, 0) }
	blocked := func(e edge) edge {
		for i := range int64(10) {
			e.event(recording.SourceServer, recording.KindPoll, i*1000*edgeMs, edgeMs, nil)
			e.Sample(recording.Sample{
				TimeNs: i*1000*edgeMs + edgeMs, Source: recording.SourceServer, Subject: edgeNode,
				Name: "blocked_clients", Value: float64(i % 3),
			})
		}
		return e
	}
	withheld := func() edge {
		e := newPath()
		for i := range int64(10) {
			e.seen(pathClient, "SET", i*1000*edgeMs, 5, part{"server", "exec", 1, ""}, part{
				"server", "withheld", 500,
				"",
			})
		}
		return e
	}
	explainEdge(t, find("client-pause-or-write-block"), []edgeCase{
		{
			name: "T2: writes were read, and nothing was sent",
			rec:  withheld().info(map[string]float64{"cmdstat_client|pause.calls": 10}), found: true,
			evidence: "the server read 10 calls of its clients, then slept before it answered, up to 500 ms: SET",
		},
		{name: "T2: the same without CLIENT PAUSE", rec: withheld()},
		{
			name:  "T0: writers are paused",
			rec:   blocked(well("redis 7.0.15")).info(map[string]float64{"cmdstat_client|pause.calls": 10}),
			found: true, evidence: "up to 2 clients blocked",
		},
		{
			name: "T0: 6.2, no blocking command", rec: blocked(well("redis 6.2.14")).snapshot("server",
				"clients",
				`{"id":3,"addr":"10.0.0.9:1","flags":"N","cmd":"get"}`), found: true,
			evidence: "no client waits",
		},
		{name: "T0: CLIENT LIST is forbidden", rec: blocked(well("redis 6.2.14"))},
		{name: "T0: workers that never got a job", rec: well("redis 7.0.15").level("server", "blocked_clients",
			10).snapshot("server", "clients", `{"id":3,"addr":"10.0.0.9:1","flags":"b","cmd":"blpop"}`)},
		{
			name: "T0: a pause, and workers as well",
			rec: blocked(well("redis 7.0.15")).info(map[string]float64{
				"cmdstat_client|pause.calls": 1,
				"cmdstat_blpop.calls":        10,
			}), found: true, against: "how many waited",
		},
		{
			name: "T0: INFO of valkey says so", rec: blocked(well("valkey 8.1.1")).snapshot("server", "info",
				`{"paused_reason":"client_pause","paused_actions":"write"}`), found: true,
			evidence: "paused_actions write",
		},
		{
			name: "T0: blocked in SET",
			rec: blocked(well("redis 6.2.14")).info(map[string]float64{"cmdstat_blpop.calls": 10}).snapshot("server",
				"clients", `{"id":3,"addr":"10.0.0.9:1","flags":"b","cmd":"set"}`), found: true,
			evidence: "blocked (flag b) in SET",
		},
		{
			name: "T0: workers in BLPOP",
			rec: blocked(well("redis 7.0.15")).info(map[string]float64{"cmdstat_blpop.calls": 10}).snapshot("server",
				"clients", `{"id":3,"addr":"10.0.0.9:1","flags":"b","cmd":"blpop"}`),
		},
		{
			name: "T0: writers are paused, and the probe's calls were slow for another reason",
			rec: blocked(newEdge("redis 7.0.15").kept(edgeMs/10, 60*edgeMs, 25)).snapshot("server", "clients",
				`{"id":3,"addr":"10.0.0.9:1","flags":"b","cmd":"set"}`), found: true,
			evidence: "blocked (flag b) in SET",
		},
		{name: "T0: a module's threads work", rec: blocked(well("redis 8.0.2")).snapshot("server", "clients",
			`{"id":3,"addr":"10.0.0.9:1","flags":"b","cmd":"ft.search"}`)},
		{name: "T0: no client is blocked", rec: well("redis 7.0.15")},
		{
			name: "T0: NOREPLICAS",
			rec: well("redis 7.0.15").info(map[string]float64{"errorstat_NOREPLICAS.count": 500}).config(
				map[string]string{"min-replicas-to-write": "1"}),
			found: true, evidence: "500 writes got NOREPLICAS", fix: "min-replicas-to-write 0",
		},
		{
			name: "T0: replicas missing on an old server",
			rec: well("redis 5.0.6").config(map[string]string{"min-replicas-to-write": "1"}).level("server",
				"min_slaves_good_slaves", 0), found: true,
		},
		{
			name: "T0: replicas are there",
			rec: well("redis 7.0.15").config(map[string]string{"min-replicas-to-write": "1"}).level("server",
				"min_slaves_good_slaves", 2),
		},
	})
}

// TestPauseAndBlockingCommand: what calls waited for behind a blocking command of their own connection was no pause.
func TestPauseAndBlockingCommand(t *testing.T) {
	e := paused("redis 7.0.15").info(map[string]float64{"cmdstat_client|pause.calls": 10})
	for i := range int64(5) {
		at := (2*i+1)*1000*edgeMs + 450*edgeMs
		e.event(recording.SourceTap, recording.KindBlockingCommand, at, 400*edgeMs, recording.BlockingCommandDetail{
			Op: "XREAD", Client: pathClient, Process: "app[7]", Behind: 3,
		})
		e.seen(pathClient, "GET", at+50*edgeMs, 5, part{"server", "exec", 1, ""}, part{"server", "withheld", 340, ""})
	}
	e.Index()
	n := facts.New(e.Recording).Nodes[0]
	pause, blocking := find("client-pause-or-write-block").Explain(n), find("blocking-cmd-on-shared-conn").Explain(n)
	if pause == nil || blocking == nil {
		t.Fatalf("pause %v, blocking command %v", pause != nil, blocking != nil)
	}
	paused, blocked, excess := claimedNs(n, pause), claimedNs(n, blocking), float64(n.Ledger.ExcessNs)
	if blocked < 0.2*excess || paused+blocked > excess {
		t.Errorf("claimed %.0f ns and %.0f ns of %.0f ns", paused, blocked, excess)
	}
}

// claimedNs is what a finding claims of slow calls.
func claimedNs(n *facts.Node, f *cause.Finding) (ns float64) {
	for _, c := range f.Claims {
		for _, call := range c.Calls {
			ns += call.Ns * n.Ledger.Slow[call.Index].Weight
		}
	}
	return ns
}
