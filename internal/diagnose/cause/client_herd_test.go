package cause_test

import (
	"strings"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// herded is a server that closes its sixty connections at three seconds, within 30 ms; they are all
// back in the next.
func herded(changeLost, changeBack func(i int, l *life)) edge {
	e := newEdge("redis 7.0.15")
	for i := range 60 {
		l := life{port: 5000 + i, to: 3*second + int64(i)*edgeMs/2, work: 50, callNs: edgeMs, idleNs: int64(i%9) * 10 *
			edgeMs, by: recording.Server}
		if changeLost != nil {
			changeLost(i, &l)
		}
		e.conn(l)
	}
	for i := range 60 {
		l := life{
			port: 6000 + i, from: 3*second + 40*edgeMs + int64(i)*edgeMs, work: 3, ops: greets, trips: 2,
			callNs: 25 * edgeMs,
		}
		if changeBack != nil {
			changeBack(i, &l)
		}
		e.conn(l)
	}
	return e
}

func TestReconnectHerd(t *testing.T) {
	few := newEdge("redis 7.0.15")
	for i := range 6 {
		few.conn(life{port: 5000 + i, to: 3 * second, work: 50, callNs: edgeMs, by: recording.Server})
		few.conn(life{port: 6000 + i, from: 3*second + edgeMs, work: 3, ops: greets, trips: 2, callNs: 25 * edgeMs})
	}
	explainEdge(t, find("reconnect-herd"), []edgeCase{
		{
			name: "T2: all at once", rec: herded(nil, nil), found: true, evidence: "opened 60 within",
			fix: "jitter",
		},
		{name: "T2: by a restart", rec: herded(nil, nil).event(recording.SourceServer, recording.KindRestart,
			3*second+second/2, 0, struct{}{}), found: true, evidence: "restarted then"},
		{name: "T2: seen from the server only", rec: herded(func(_ int, l *life) { l.remote = true },
			func(_ int, l *life) { l.remote = true }), found: true, evidence: "10.9.9.9"},
		{name: "the clients closed them", rec: herded(func(_ int, l *life) { l.by = recording.Client }, nil)},
		{name: "they come back when they are needed", rec: herded(nil, func(i int, l *life) {
			l.from = 3*second +
				int64(i)*100*edgeMs
		})},
		{name: "the server's own limit of idle time", rec: herded(func(_ int, l *life) { l.idleNs = 2 * second },
			nil).config(map[string]string{"timeout": "1"})},
		{name: "jobs that open and close", rec: herded(nil, func(_ int, l *life) {
			l.to, l.idleNs = l.from+100*edgeMs,
				edgeMs
		})},
		{name: "six connections", rec: few},
		{name: "a cold pool", rec: cold(0, nil)},
	})
}

// TestReconnectHerdByCounters: with a connection to the server alone.
func TestReconnectHerdByCounters(t *testing.T) {
	counted := func(restart, stayed bool) edge {
		e := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0)
		received, connected := 5000.0, 700.0
		for s := range int64(11) {
			if received += 2; s == 5 {
				received += 650
				if restart {
					received = 650
				}
				if !stayed {
					connected = 100
				}
			}
			e.Sample(recording.Sample{
				TimeNs: s * second, Source: recording.SourceServer, Subject: edgeNode,
				Name: "total_connections_received", Value: received,
			})
			e.Sample(recording.Sample{
				TimeNs: s * second, Source: recording.SourceServer, Subject: edgeNode,
				Name: "connected_clients", Value: connected,
			})
		}
		for i := range int64(4) {
			e.call("kept", 4*second+i*200*edgeMs, 150*edgeMs)
		}
		return e
	}
	cut := recording.ErrorDetail{Phase: "command", Message: "10.0.0.5:6379: the connection was closed before the " +
		"reply to PING; the server ended"}
	explainEdge(t, find("reconnect-herd"), []edgeCase{
		{
			name: "T0: a restart", rec: counted(true, true), found: true, evidence: "restarted",
			against: "not seen",
		},
		{name: "T0: killed, as slowpath's own were", rec: counted(false, true).event(recording.SourceProbe,
			recording.KindError, 4*second+second/2, 0, cut), found: true, evidence: "652 connections"},
		{name: "T0: a burst of new connections, and none lost", rec: counted(false, true)},
		{name: "T0: they did not stay", rec: counted(true, false)},
	})
}

// cold is a process with an empty pool at two seconds, when forty callers come; apart is the time between their
// dials.
func cold(apart int64, change func(i int, l *life)) edge {
	e := newEdge("redis 7.0.15")
	for i := range 40 {
		l := life{port: 5000 + i, from: 2*second + int64(i)*apart, work: 4, ops: greets, trips: 3, callNs: 20 * edgeMs}
		if change != nil {
			change(i, &l)
		}
		e.conn(l)
	}
	return e
}

func TestDialHerd(t *testing.T) {
	inRow := func(gap int64) func(i int, l *life) {
		return func(i int, l *life) {
			l.dialNs = 30 * edgeMs
			l.from = 2*second + int64(i+1)*(30*edgeMs+gap)
		}
	}
	explainEdge(t, find("dial-herd-or-serialised-dial"), []edgeCase{
		{
			name: "T2: forty at once", rec: cold(edgeMs/4, nil), found: true,
			evidence: "up to 40 at the same time", fix: "MinIdleConns",
		},
		{
			name: "T2: one after the other", rec: cold(0, inRow(edgeMs/10)), found: true,
			evidence: "one after the other in",
			fix:      "PR 3088",
		},
		{name: "dials that need not wait for each other", rec: cold(0, inRow(60*edgeMs))},
		{name: "made ahead", rec: cold(edgeMs/4, func(_ int, l *life) { l.firstAfter = second })},
		{name: "they took the place of others", rec: herded(nil, nil)},
		{name: "jobs", rec: jobs()},
		{name: "closed again", rec: cold(edgeMs/4, func(_ int, l *life) {
			l.to, l.idleNs = l.from+400*edgeMs,
				10*edgeMs
		})},
		{name: "a pool that grows", rec: cold(150*edgeMs, nil)},
	})
}

// No pool has an idle limit below a second: to close first is no fix where connections are closed sooner.
func TestStaleBeforeAnyPoolCloses(t *testing.T) {
	for idleNs, want := range map[int64]bool{300 * edgeMs: false, 1300 * edgeMs: true} {
		rec := reaped(func(i int, l *life) {
			l.by, l.from, l.to, l.idleNs = recording.Server, l.from*3, l.from*3+1400*edgeMs, idleNs
		}).config(map[string]string{"timeout": "0"})
		rec.Index()
		f := find("stale-conn-server-timeout").Explain(facts.New(rec.Recording).Nodes[0])
		if f == nil {
			t.Fatalf("closed after %d ns: not found", idleNs)
		}
		if got := strings.Contains(strings.Join(f.FixLines(), "\n"), "ConnMaxIdleTime"); got != want {
			t.Errorf("closed after %d ns: offers a pool's limit %v, want %v: %q", idleNs, got, want, f.FixLines())
		}
	}
}

func TestStaleConnServerTimeout(t *testing.T) {
	cut := func(i int, l *life) {
		l.by, l.idleNs = recording.Server, 300*edgeMs+int64(i%5)*20*edgeMs
	}
	late := func(i int, l *life) {
		cut(i, l)
		l.from, l.to, l.idleNs = l.from*3, l.from*3+1400*edgeMs, 1300*edgeMs
	}
	counted := func(limit string) edge {
		return newEdge("redis 7.0.15").config(map[string]string{"timeout": limit}).kept(2*edgeMs, 0, 0).fresh(20*edgeMs,
			2*edgeMs).
			info(map[string]float64{"total_connections_received": 60, "total_commands_processed": 500}).level("server",
			"connected_clients", 5)
	}
	explainEdge(t, find("stale-conn-server-timeout"), []edgeCase{
		{
			name: "T2: something on the path", rec: reaped(cut).config(map[string]string{"timeout": "0"}),
			found: true, evidence: "a proxy, a balancer", fix: "Raise the idle timeout",
		},
		{
			name: "T2: something on the path, later than a pool's shortest limit",
			rec:  reaped(late).config(map[string]string{"timeout": "0"}), found: true,
			fix: "set ConnMaxIdleTime to 1 *",
		},
		{
			name: "T2: the server's parameter", rec: reaped(late).config(map[string]string{"timeout": "1"}),
			found: true, evidence: "timeout is 1 s", fix: "CONFIG SET timeout 0",
		},
		{name: "T2: CONFIG is forbidden", rec: reaped(cut), found: true, against: "does not report"},
		{name: "the client closes them", rec: reaped(nil)},
		{name: "after no fixed time", rec: reaped(func(i int, l *life) {
			l.by, l.idleNs = recording.Server,
				int64(1+i*i)*edgeMs
		})},
		{name: "a herd", rec: herded(nil, nil)},
		{name: "a call was under way", rec: reaped(func(i int, l *life) { cut(i, l); l.waiting = 1 })},
		{
			name: "T0: few calls on each, and a limit of idle time", rec: counted("1"), found: true, doubted: true,
			against: "was not seen",
		},
		{name: "T0: no limit", rec: counted("0")},
		{name: "T0: a limit that is longer than the watch", rec: counted("300")},
	})
}

// leaking takes a connection from the pool every 200 ms and keeps it, while another one is used.
func leaking(change func(i int, l *life)) edge {
	e := newEdge("redis 7.0.15").used(app, "app", 4999, 20, 0.1)
	for i := range 30 {
		l := life{port: 5000 + i, from: int64(i+1) * 200 * edgeMs, work: 2, ops: greets, trips: 2, callNs: 8 * edgeMs}
		if change != nil {
			change(i, &l)
		}
		e.conn(l)
	}
	return e
}

func TestPoolLeak(t *testing.T) {
	explainEdge(t, find("pool-leak"), []edgeCase{
		{
			name: "T2: one after the other", rec: leaking(nil), found: true, evidence: "never used again",
			against: "another client object", fix: "defer conn.Close()",
		},
		{name: "closed in the end", rec: leaking(func(_ int, l *life) { l.to = l.from + second })},
		{name: "a pool that reaps", rec: reaped(nil)},
		{name: "a cold pool", rec: cold(edgeMs/4, nil)},
		{name: "a herd", rec: herded(nil, nil)},
		{name: "made ahead", rec: leaking(func(_ int, l *life) { l.firstAfter = 4 * second })},
	})
}

// TestHerdsAreToldApart: the first finding is the true cause, whatever else is found.
func TestHerdsAreToldApart(t *testing.T) {
	stale := reaped(func(i int, l *life) { l.by, l.idleNs = recording.Server, 300*edgeMs+int64(i%5)*20*edgeMs })
	for name, tt := range map[string]struct {
		rec   edge
		first string
	}{
		"herd":    {herded(nil, nil), "reconnect-herd"},
		"cold":    {cold(edgeMs/4, nil), "dial-herd-or-serialised-dial"},
		"stale":   {stale, "stale-conn-server-timeout"},
		"leaking": {leaking(nil), "pool-leak"},
		"jobs":    {jobs(), "handshake-extra-rtts"},
		"reaped":  {reaped(nil), "pool-idle-reap-redial"},
	} {
		tt.rec.Index()
		d := verdict.Diagnose(tt.rec.Recording, "test")
		if len(d.Findings) == 0 || d.Findings[0].Cause != tt.first {
			t.Errorf("%s: %+v, want %s first", name, d.Findings, tt.first)
		}
	}
}

func TestPoolOversized(t *testing.T) {
	crowd := func(conns int, run float64) edge {
		e := newEdge("redis 7.0.15").mainThread(run, 0).kept(3*edgeMs, 0, 0).fresh(edgeMs/20,
			3*edgeMs).info(map[string]float64{"total_commands_processed": 1e6})
		for i := range conns {
			e.used(app, "app", 5000+i, 250, 0.95)
		}
		return e
	}
	explainEdge(t, find("pool-oversized"), []edgeCase{
		{
			name: "T2: four hundred in the queue", rec: crowd(400, 0.97), found: true,
			evidence: "400 connections",
			against:  "wait in any case", fix: "smaller",
		},
		{name: "fifty: the server has just too much work", rec: crowd(50, 0.97)},
		{name: "a server with time to spare", rec: crowd(400, 0.5)},
		{name: "idle ones", rec: newEdge("redis 7.0.15").mainThread(0.97, 0).kept(3*edgeMs, 0, 0).fresh(edgeMs/20,
			3*edgeMs).info(map[string]float64{"total_commands_processed": 1e6}).used(app, "app", 1, 5000, 0.9)},
		{name: "a benchmark", rec: func() edge {
			e := newEdge("redis 7.0.15").mainThread(0.97, 0).kept(3*edgeMs, 0, 0).fresh(edgeMs/20,
				3*edgeMs).info(map[string]float64{"total_commands_processed": 1e6})
			for i := range 400 {
				e.used(app, "redis-benchmark", 5000+i, 250, 0.95)
			}
			return e
		}()},
	})
}
