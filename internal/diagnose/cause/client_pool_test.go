package cause_test

import (
	"slices"
	"strconv"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

const callNs = int64(4e6)

var greets = []string{"HELLO", "CLIENT SETINFO", "CLIENT SETINFO"}

// reaped is a client that calls each 500 ms; its pool has closed the connection by then.
func reaped(change func(i int, l *life)) edge {
	e := newEdge("redis 7.0.15")
	for i := range 18 {
		at := int64(i+1) * 500 * edgeMs
		l := life{
			port: 5000 + i, from: at, to: at + 500*edgeMs, work: 1, ops: greets, trips: 2, callNs: callNs,
			idleNs: 485*edgeMs + int64(i%5)*edgeMs,
		}
		if change != nil {
			change(i, &l)
		}
		e.conn(l)
	}
	return e
}

// jobs are four workers that create a client each for every two calls.
func jobs() edge {
	e := newEdge("redis 7.0.15")
	for i := range 36 {
		at := int64(i+1) * 50 * edgeMs
		e.conn(life{port: 5000 + i, from: at, to: at + 200*edgeMs, work: 2, ops: []string{
			"HELLO", "SELECT",
			"CLIENT SETNAME", "CLIENT SETINFO",
		}, trips: 4, callNs: callNs, idleNs: 95*edgeMs + int64(i%5)*edgeMs})
	}
	return e
}

// overflowing keeps one idle connection of many: those that it closes had one to five calls.
func overflowing(change func(i int, l *life)) edge {
	e := newEdge("redis 7.0.15").conn(life{
		port: 4999, from: edgeMs, work: 700, ops: []string{"AUTH"}, trips: 1,
		callNs: callNs,
	})
	for i := range 200 {
		at := int64(i+1) * 10 * edgeMs
		l := life{
			port: 5000 + i, from: at, to: at + 40*edgeMs, work: 1 + int64(i%5), ops: []string{"AUTH"}, trips: 1,
			callNs: callNs, idleNs: int64(i%7) * edgeMs / 2,
		}
		if change != nil {
			change(i, &l)
		}
		e.conn(l)
	}
	return e
}

// near is one near its server: dials cost little compared with calls. One connection of each twenty was used for many
// calls.
func near(change func(i int, l *life)) edge {
	e := overflowing(func(i int, l *life) {
		l.work, l.ops, l.trips, l.callNs, l.dialNs = 1+int64(i%2), nil, 0, edgeMs/10, 15e3
		if i%20 == 0 {
			l.work = 40
		}
		if change != nil {
			change(i, l)
		}
	})
	return e.info(map[string]float64{
		"total_connections_received": 220,
		"total_commands_processed":   1200,
	}).kept(edgeMs/10, 0, 0).fresh(edgeMs/5, edgeMs/5)
}

func dialsSlowly(_ int, l *life) { l.dialNs = 5 * edgeMs }

func callsOnce(_ int, l *life) { l.work, l.ops = 1, nil }

func gaveUp(i int, l *life) { l.waiting, l.idleNs = 1, 10*edgeMs+int64(i%4)*edgeMs/4 }

func TestPoolIdleReapRedial(t *testing.T) {
	explainEdge(t, find("pool-idle-reap-redial"), []edgeCase{
		{
			name: "T2: a call each half second", rec: reaped(nil), found: true,
			evidence: "an idle limit of at most 485 ms", fix: "MinIdleConns",
		},
		{name: "a process for each job", rec: reaped(func(i int, l *life) {
			l.pid, l.idleNs, l.work = app+1+i, 2*edgeMs+int64(i%5)*edgeMs/5, 28
		})},
		{name: "a connection for each job", rec: reaped(func(i int, l *life) {
			l.idleNs, l.work = 2*edgeMs+int64(i%5)*edgeMs/5, 28
		})},
		{name: "T2: calls at random", rec: reaped(func(i int, l *life) {
			if i%3 == 0 { // two calls, with a pause that the pool allowed
				l.work, l.idleNs = 2, 300*edgeMs
				l.to = l.from + l.idleNs + 4*callNs + int64(230+i)*edgeMs
			} else {
				l.idleNs = int64(250+20*i) * edgeMs
			}
		}), found: true, evidence: "an idle limit of about 258 ms"},
		{
			name: "T2: nine processes, each twice", rec: reaped(func(i int, l *life) { l.pid = app + 1 + i%9 }),
			found: true, evidence: "app (9 processes) closed 18 idle connections",
		},
		{
			name: "T2: seen from the server only", rec: reaped(func(_ int, l *life) { l.remote = true }),
			found: true, evidence: "10.9.9.9", against: "other hosts",
		},
		{name: "a client for each job", rec: jobs()},
		{name: "too few connections kept", rec: overflowing(nil)},
		{name: "given up", rec: reaped(gaveUp)},
		{name: "the server closes them", rec: reaped(func(_ int, l *life) { l.by = recording.Server })},
		{name: "new ones are made ahead", rec: reaped(func(_ int, l *life) { l.firstAfter = 300 * edgeMs })},
		{name: "kept", rec: newEdge("redis 7.0.15").used(app, "app", 5000, 2, 0.01)},
	})
}

func TestPoolMaxIdleChurn(t *testing.T) {
	explainEdge(t, find("pool-maxidle-churn"), []edgeCase{
		{
			name: "T2: one is kept", rec: overflowing(nil), found: true, evidence: "1 to 5 calls on each",
			fix: "MaxIdle",
		},
		{name: "T2: near its server", rec: near(nil), found: true, evidence: "a call on a new connection " +
			"takes 200 µs more", fix: "MaxIdle"},
		{
			name: "near its server, two calls on each at most",
			rec:  near(func(i int, l *life) { l.work = 1 + int64(i%2) }),
		},
		{name: "one call on each: no pool", rec: overflowing(func(_ int, l *life) { l.work = 1 })},
		{name: "a limit on idle time", rec: reaped(nil)},
		{name: "closed long after the last call: not for lack of room", rec: overflowing(func(i int, l *life) {
			l.to,
				l.idleNs = l.from+int64(100+i%9*50)*edgeMs, int64(40+i%9*50)*edgeMs
		})},
		{name: "a client for each job", rec: jobs()},
		{name: "given up", rec: overflowing(gaveUp)},
		{name: "a pool that shrank once", rec: newEdge("redis 7.0.15").used(app, "app", 4999, 500,
			0.5).conn(life{port: 5000, from: second, to: 2 * second, work: 3, callNs: callNs}).conn(life{
			port: 5001,
			from: second, to: 2 * second, work: 9, callNs: callNs,
		})},
	})
}

func TestTimeoutDiscardChurn(t *testing.T) {
	unheard := overflowing(gaveUp) // the same, but what was given up had been retransmitted again and again
	for i := range 200 {
		at := int64(i+1)*10*edgeMs + 30*edgeMs
		for k := range int64(2) {
			unheard.event(recording.SourceTap, recording.KindRetransmit, at, (2+3*k)*edgeMs,
				recording.RetransmitDetail{Client: address(5000 + i), From: recording.Client, State: "established"})
		}
	}
	explainEdge(t, find("timeout-discard-churn"), []edgeCase{
		{
			name: "T2: a timeout of 10 ms", rec: overflowing(gaveUp), found: true,
			evidence: "a timeout of about 10 ms", fix: "ReadTimeout",
		},
		{
			name: "T2: and what they waited for", rec: overflowing(gaveUp).event(recording.SourceServer,
				recording.KindSlowlog, second, 18*edgeMs, recording.SlowlogDetail{Command: "KEYS", WindowNs: 1e9}),
			found: true, evidence: "SLOWLOG has commands of up to 18 ms",
		},
		{name: "T2: callers that go away", rec: overflowing(func(i int, l *life) {
			l.waiting, l.idleNs = 1,
				int64(1+i%50)*edgeMs
		}), found: true, against: "not one timeout"},
		{name: "closed between calls", rec: overflowing(nil)},
		{name: "requests that never arrived", rec: unheard},
		{name: "the process ended", rec: newEdge("redis 7.0.15").conn(life{
			port: 1, to: second, work: 5, callNs: callNs,
			waiting: 1,
		}).conn(life{port: 2, to: second, work: 5, callNs: callNs, waiting: 1}).conn(life{
			port: 3,
			to:   second, work: 5, callNs: callNs, waiting: 1,
		})},
	})
}

func TestHandshakeExtraRTTs(t *testing.T) {
	lives := newEdge("redis 7.0.15")
	for i := range 10 {
		lives.conn(life{
			port: 5000 + i, from: second, to: 9 * second, work: 1500, ops: greets, trips: 2,
			callNs: callNs,
		})
	}
	explainEdge(t, find("handshake-extra-rtts"), []edgeCase{
		{
			name: "T2: a client for each job", rec: jobs(), found: true, evidence: "took 4 round trips",
			fix: "DisableIdentity",
		},
		{name: "one round trip", rec: overflowing(nil)},
		{name: "a pool that keeps its connections", rec: lives},
		{name: "two connections", rec: newEdge("redis 7.0.15").used(app, "app", 4999, 500, 0.5).conn(life{
			port: 1,
			from: second, work: 900, ops: greets, trips: 2, callNs: callNs,
		}).conn(life{
			port: 2, from: second, work: 900,
			ops: greets, trips: 2, callNs: callNs,
		})},
	})
}

// The pool's closing explains more than its handshakes; for clients made for each job it is the other way round.
func TestRedialsAreToldApart(t *testing.T) {
	for name, tt := range map[string]struct {
		rec   edge
		first string
	}{
		"reaped":                      {reaped(nil), "pool-idle-reap-redial"},
		"overflows":                   {overflowing(dialsSlowly), "pool-maxidle-churn"},
		"far too quick to be noticed": {overflowing(nil), ""},
		"near, and as quick":          {near(nil), ""},
		"given up":                    {overflowing(gaveUp), "timeout-discard-churn"},
		"jobs":                        {jobs(), "handshake-extra-rtts"},
	} {
		tt.rec.Index()
		d := verdict.Diagnose(tt.rec.Recording, "test")
		if tt.first == "" && len(d.Findings) == 0 {
			continue
		}
		if len(d.Findings) == 0 || d.Findings[0].Cause != tt.first {
			t.Errorf("%s: %+v, want %s first", name, d.Findings, tt.first)
		}
	}
}

func TestPoolTestOnBorrow(t *testing.T) {
	counted := func(pings, gets float64) edge {
		return newEdge("redis 7.0.15").info(map[string]float64{
			"cmdstat_ping.calls": pings, "cmdstat_get.calls": gets,
			"total_commands_processed": pings + gets,
		})
	}
	explainEdge(t, find("pool-test-on-borrow"), []edgeCase{
		{
			name: "T0: as many PINGs as GETs", rec: counted(2000, 2000), found: true,
			evidence: "2000 PINGs for 2000", against: "not seen", fix: "TestOnBorrow",
		},
		{
			name: "T2: and their time", rec: newEdge("redis 7.0.15").all("PING", 2000, 3e6).all("GET", 2000, 3e6),
			found: true, evidence: "50 % of what the callers wait for",
		},
		{
			name: "T0: a connection for each PING",
			rec:  counted(2000, 2000).info(map[string]float64{"total_connections_received": 2000}),
		},
		{name: "T0: health checks", rec: counted(20, 2000)},
		{name: "T0: a monitor that pings", rec: counted(2000, 100)},
		{name: "T0: only the probe's", rec: counted(200, 100).kept(edgeMs/10, 0, 0)},
		{
			name: "T2: a PING per connection, and unnamed request/response turns under TLS",
			rec: newEdge("redis 7.0.15").all("PING",
				2000, 3e6).all("?", 2000, 3e6),
		},
		{
			name: "T2: a connection for each PING",
			rec:  overflowing(callsOnce).all("PING", 200, 3e6).all("GET", 1000, 3e6),
		},
		{name: "T2: keepalives", rec: newEdge("redis 7.0.15").all("PING", 30, 3e6).all("GET", 100, 3e6)},
	})
}

func TestPoolExhaustedWait(t *testing.T) {
	pool := func(conns int, busy float64) edge {
		e := newEdge("redis 7.0.15").all("GET", conns*400*9, 2375e3)
		for i := range conns {
			e.used(app, "app", 5000+i, 400, busy)
		}
		return e
	}
	explainEdge(t, find("pool-exhausted-wait"), []edgeCase{
		{
			name: "T2: three of three in use", rec: pool(3, 0.98), found: true, evidence: "3 connections",
			against: "one call after the other", fix: "PoolSize",
		},
		{name: "T2: one was given up and replaced", rec: pool(3, 0.98).conn(life{
			port: 1, to: second,
			work: 400, callNs: edgeMs, waiting: 1,
		}), found: true},
		{name: "it had more, and closed one", rec: pool(3, 0.98).conn(life{
			port: 1, from: second, to: 2 * second,
			work: 400, callNs: edgeMs,
		})},
		{name: "half in use", rec: pool(10, 0.6)},
		{name: "a server that cannot do more", rec: pool(3, 0.98).mainThread(0.97, 0)},
		{name: "slow calls keep them in use", rec: pool(3, 0.98).slowCalls(20, 900*edgeMs,
			recording.Receive).slowCalls(20, 900*edgeMs, recording.Receive)},
		{name: "one program, one connection", rec: pool(1, 0.98)},
		{name: "pipelines", rec: pool(3, 0.98).all("GET", 40_000, 2375e3)},
		{name: "a benchmark", rec: newEdge("redis 7.0.15").used(app, "redis-benchmark", 1, 400, 0.99).used(app,
			"redis-benchmark", 2, 400, 0.99)},
	})
}

// handed adds to each of the first connections how often it was handed over, after waits of a time.
func (e edge) handed(conns int, share float64, waitNs int64) edge {
	for i := range conns {
		for s := range int64(10) {
			turns := 40 * float64(s)
			for name, v := range map[string]float64{
				"turns": turns, "handed": turns * share, "waited_ns": turns * share * float64(waitNs),
				"waited_max_ns": 2 * float64(waitNs), "kept_ns": turns * share * 12e6,
			} {
				e.Sample(recording.Sample{
					TimeNs: s*second + 1e6, Source: recording.SourceTap,
					Subject: recording.ConnPrefix + address(5000+i), Name: name, Value: v,
				})
			}
		}
	}
	return e
}

// library is what the calls of a Go program waited in its library's pool on average, while each took a millisecond.
func (e edge) library(calls, others, waitNs int64) edge {
	w := recording.LibraryWaits{
		Ns: 10 * second, Calls: calls, Others: others, CallsNs: calls * edgeMs, WaitedNs: calls * waitNs,
		WaitedMaxNs: 3 * waitNs,
	}
	if waitNs > edgeMs {
		w.Longer = calls
	}
	e.Snapshot(recording.Snapshot{
		TimeNs: 10 * second, Source: recording.SourceTap, Subject: recording.ProcessPrefix + strconv.Itoa(app),
		Name: recording.SnapshotLibrary, Body: recording.Detail(w),
	})
	return e
}

func TestGoroutinesWaitInThePool(t *testing.T) {
	pool := func(conns int, busy float64) edge {
		e := newEdge("redis 7.0.15").all("GET", conns*400*9, edgeMs)
		for i := range conns {
			e.used(app, "app", 5000+i, 400, busy)
		}
		return e
	}
	explainEdge(t, find("pool-exhausted-wait"), []edgeCase{
		{
			name: "they wait", rec: pool(2, 0.98).library(7000, 10, 17*edgeMs), found: true,
			evidence: "waited in the pool of their client library for 17 ms", fix: "PoolSize",
		},
		{name: "busy connections, and nobody waits", rec: pool(3, 0.98).library(7000, 10, 20e3)},
		{
			name: "it is not known of most calls", rec: pool(3, 0.98).library(100, 7000, 17*edgeMs), found: true,
			evidence: "Erlang C",
		},
		{
			name: "slow calls keep the connections in use",
			rec: pool(3, 0.98).library(7000, 10, 17*edgeMs).slowCalls(20, 900*edgeMs,
				recording.Receive).slowCalls(20, 900*edgeMs, recording.Receive),
		},
		{name: "waits that nobody notices", rec: pool(2, 0.3).library(50, 0, 2*edgeMs)},
	})
}

// TestPoolOfTheCallersLibrary: the option is that of the process that waits, and of no other library.
func TestPoolOfTheCallersLibrary(t *testing.T) {
	pool := func() edge {
		e := newEdge("redis 7.0.15").all("GET", 2*400*9, edgeMs)
		for i := range 2 {
			e.used(app, "shop", 5000+i, 400, 0.98)
		}
		return e.library(7000, 10, 17*edgeMs)
	}
	for name, tt := range map[string]struct {
		rec  edge
		want []string
	}{
		"built with it, behind a proxy": {
			pool().listed("jedis", "5.0.0").runtime(
				`{"go":"go1.26.8","libraries":[{"name":"go-redis","version":"9.7.0","how":"built-in"}]}`),
			[]string{"go-redis", ""},
		},
		"a Go program": {pool().runtime(`{"go":"go1.26.8"}`), []string{"go-redis", "redigo", ""}},
		"a library without such an option": {
			pool().runtime(`{"go":"go1.26.8","libraries":[{"name":"rueidis","version":"1.0.79","how":"built-in"}]}`),
			[]string{"", ""},
		},
	} {
		tt.rec.Index()
		var got []string
		f := find("pool-exhausted-wait").Explain(facts.New(tt.rec.Recording).Nodes[0])
		if f == nil {
			t.Errorf("%s: not found", name)
			continue
		}
		for _, s := range f.FixSteps {
			got = append(got, s.Library)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: steps for %q, want %q", name, got, tt.want)
		}
	}
}

func TestThreadsQueueForConnections(t *testing.T) {
	pool := func(conns int) edge {
		e := newEdge("redis 7.0.15").all("GET", conns*80*9, 60e3)
		for i := range conns {
			e.used(app, "app", 5000+i, 80, 0.005)
		}
		return e
	}
	explainEdge(t, find("pool-exhausted-wait"), []edgeCase{
		{
			name: "all handed over", rec: pool(2).handed(2, 0.98, 134*edgeMs), found: true,
			evidence: "slept for 134 ms", fix: "kept for 12 ms",
		},
		{name: "one of two connections is free at times", rec: pool(2).handed(1, 0.98, 134*edgeMs)},
		{name: "some turns by chance", rec: pool(2).handed(2, 0.3, 134*edgeMs)},
		{name: "waits shorter than a call", rec: pool(2).handed(2, 0.98, 20e3)},
		{name: "waits that nobody notices", rec: pool(2).handed(2, 0.98, 200e3)},
		{name: "short waits that add up", rec: pool(2).handed(2, 0.98, 3*edgeMs), found: true},
		{
			name: "one connection behind a lock", rec: pool(1).handed(1, 0.98, 134*edgeMs), found: true,
			evidence: "has 1 connection",
		},
		{name: "a busy thread for each connection", rec: busy(3).handed(3, 0, 0).threaded(3)},
		{
			name:  "goroutines on as many threads",
			rec:   busy(3).handed(3, 0, 0).threaded(3).runtime(`{"go":"go1.26.1","heeds_quota":true}`),
			found: true, evidence: "Erlang C", against: "one call after the other",
		},
		{
			name: "a busy thread of a JVM for each connection",
			rec:  busy(3).handed(3, 0, 0).threaded(3).runtime(`{"jvm":true,"heeds_quota":true}`),
		},
		{name: "more threads than busy connections", rec: busy(3).handed(3, 0, 0).threaded(4), found: true},
		{name: "some of its threads wait", rec: busy(3).handed(3, 0.3, 20*edgeMs).threaded(3), found: true},
		{name: "an event loop with busy connections", rec: busy(3).handed(3, 0, 0).threaded(1), found: true},
		{name: "busy connections before hand-overs were counted", rec: busy(3).threaded(3), found: true},
	})
}

// busy are connections that are in use nearly all the time.
func busy(conns int) edge {
	e := newEdge("redis 7.0.15").all("GET", conns*400*9, 2375e3)
	for i := range conns {
		e.used(app, "app", 5000+i, 400, 0.98)
	}
	return e
}

// usedAt is a connection to another node that calls half of the time.
func (e edge) usedAt(node string, port int) edge {
	subject := recording.ConnPrefix + address(port)
	e.Snapshot(recording.Snapshot{
		TimeNs: 1e6, Source: recording.SourceTap, Subject: subject, Name: "ends",
		Body: recording.Detail(recording.ConnEnds{Node: node, PID: app, Comm: "app"}),
	})
	for s := range int64(10) {
		for name, v := range map[string]float64{
			"calls": 900 * float64(s), "in_flight_ns": 0.5e9 * float64(s),
			"idle_ns": 0.5e9 * float64(s),
		} {
			e.Sample(recording.Sample{
				TimeNs: s*second + 1e6, Source: recording.SourceTap, Subject: subject, Name: name,
				Value: v,
			})
		}
	}
	return e
}

// Handshakes weigh by the time of all callers: the few at a node that is hardly called are nothing compared with what
// the callers spend at another.
func TestHandshakesWeighByTheTimeOfAllNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		others int
		found  bool
	}{"hardly called at all": {0, true}, "called at another node": {40, false}} {
		e := jobs()
		e.SetMeta(recording.MetaNodes, `["`+edgeNode+`","`+otherNode+`"]`)
		for i := range tt.others {
			e.usedAt(otherNode, 7000+i)
		}
		e.Index()
		c := facts.New(e.Recording)
		if f := find("handshake-extra-rtts").Explain(c.Nodes[0]); (f != nil) != tt.found {
			t.Errorf("%s: %+v, found want %v; losses %+v", name, f, tt.found, connection.TotalOverhead(c))
		}
	}
}
