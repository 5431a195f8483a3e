package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// stalls are thirty calls of two thousand, each late by 80 ms for a reason at the client's end.
func stalls(state string) edge {
	return newEdge("redis 7.0.15").all("GET", 2000, 300e3).slowCalls(30, 80*edgeMs, state)
}

func (e edge) threaded(readers float64) edge {
	return e.client(recording.SourceTap, "readers", readers, readers).client(recording.SourceHost, "threads", 10, 10)
}

func (e edge) quota() edge {
	e.Snapshot(recording.Snapshot{Source: recording.SourceHost, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix,
		app), Name: "process", Body: `{"comm":"app","cgroup":"/app"}`})
	for name, v := range map[string]float64{"cpu.quota_us": 20_000, "cpu.period_us": 100_000} {
		e.Sample(recording.Sample{
			Source: recording.SourceHost, Subject: recording.CgroupPrefix + "/app", Name: name,
			Value: v,
		})
	}
	return e
}

// heldBy: the tap knows which cgroup's quota throttled the threads.
func (e edge) heldBy(cgroup string, cores float64) edge {
	for i, ev := range e.Events {
		if ev.Kind == recording.KindThrottled {
			d := recording.DetailOf[recording.ThreadDetail](ev)
			d.Cgroup, d.Cores = cgroup, cores
			e.Events[i].Detail = recording.Detail(d)
		}
	}
	return e
}

var neighbour = &recording.Task{PID: 7, TID: 7, Comm: "stress"}

func TestClientCFSThrottled(t *testing.T) {
	throttled := func(e edge) edge { return e.waits(30, 80*edgeMs, recording.KindThrottled, nil) }
	explainEdge(t, find("client-cfs-throttled"), []edgeCase{
		{
			name: "T2: the reader itself", rec: throttled(stalls(recording.Throttled)), found: true,
			evidence: "app[100]", fix: "limits",
		},
		{
			name: "T2: another thread was to read", rec: throttled(stalls(recording.Receive)).threaded(4), found: true,
			evidence: "30 of 30 slow calls",
		},
		{
			name: "T2 and T1: the quota", rec: throttled(stalls(recording.Throttled)).quota(), found: true,
			evidence: "0.20 cores", fix: "/app",
		},
		{name: "T2: its quota is known there, too", rec: throttled(stalls(recording.Throttled)).heldBy("/pod/app",
			0.25), found: true, evidence: "quota of /pod/app throttled them, 0.25 cores", fix: "/pod/app"},
		{name: "its threads wait for others", rec: stalls(recording.RunQueue).waits(30, 80*edgeMs,
			recording.KindRunQueue, neighbour)},
		{name: "its loop computes", rec: stalls(recording.Receive)},
		{name: "throttled, and no call waited", rec: throttled(newEdge("redis 7.0.15").all("GET", 2000, 300e3))},
		{name: "two calls of two thousand", rec: newEdge("redis 7.0.15").all("GET", 2000, 300e3).slowCalls(2, 80*edgeMs,
			recording.Throttled)},
	})
}

// served says that the neighbour is the watched server.
func served(e edge) edge {
	e.Snapshot(recording.Snapshot{
		TimeNs: 1, Source: recording.SourceHost, Subject: edgeNode, Name: "process",
		Body: fmt.Sprintf(`{"pid":%d}`, neighbour.PID),
	})
	return e
}

func TestClientCPUSaturated(t *testing.T) {
	own := &recording.Task{PID: app, TID: 105, Comm: "app"}
	busy := func(e edge, by *recording.Task) edge {
		return e.waits(30, 80*edgeMs, recording.KindRunQueue, by).client(recording.SourceHost, "cpu_ns", 0, 2e9)
	}
	explainEdge(t, find("client-cpu-saturated"), []edgeCase{
		{
			name: "T2: its own threads", rec: busy(stalls(recording.Receive).threaded(4), own), found: true,
			evidence: "its own threads for 100 % of that time", fix: "more CPUs",
		},
		{
			name: "T2: a neighbour", rec: busy(stalls(recording.RunQueue), neighbour), found: true,
			evidence: "stress[7]",
			fix:      "that stress[7] does not use",
		},
		{
			name: "T2 without T1", rec: stalls(recording.RunQueue).waits(80, 80*edgeMs, recording.KindRunQueue,
				neighbour),
			found: true, evidence: "run queue",
		},
		{name: "T2: the watched server has the CPU", rec: served(busy(stalls(recording.RunQueue), neighbour))},
		{name: "a thread waits now and then", rec: stalls(recording.Receive).threaded(4).waits(30, 2*edgeMs,
			recording.KindRunQueue, own).client(recording.SourceHost, "cpu_ns", 0, 5e9)},
		{name: "throttled", rec: busy(stalls(recording.Throttled).threaded(4), own).waits(30, 80*edgeMs,
			recording.KindThrottled, nil)},
		{name: "one thread, on the CPU", rec: stalls(recording.Receive).threaded(1).client(recording.SourceHost,
			"cpu_ns", 0, 9e9)},
		{
			name: "T2: a goroutine computes", found: true, evidence: "other goroutines", fix: "GOMAXPROCS",
			rec: stalls(recording.Receive).threaded(1).runtime(`{"go":"go1.26.8"}`).client(recording.SourceHost,
				"cpu_ns", 0, 9.5e9),
		},
		{name: "a Go program that hardly computes", rec: stalls(recording.Receive).threaded(1).
			runtime(`{"go":"go1.26.8"}`).client(recording.SourceHost, "cpu_ns", 0, 5e9)},
	})
}

func TestClientEventLoopBlocked(t *testing.T) {
	explainEdge(t, find("client-eventloop-blocked"), []edgeCase{
		{
			name: "T2: it computes", rec: stalls(recording.Receive).threaded(1), found: true,
			evidence: "it computes", against: "garbage collection", fix: "to_thread",
		},
		{
			name: "T2: it sleeps elsewhere", rec: stalls(recording.OffCPU).threaded(1), found: true,
			evidence: "a lock, a file",
		},
		{
			name:  "T2: its runtime reports collections",
			rec:   stalls(recording.Receive).threaded(1).client(recording.SourceTap, "collector.watched", 1, 1),
			found: true, evidence: "reports collections, and had no long one",
		},
		{name: "many threads read", rec: stalls(recording.Receive).threaded(4)},
		{name: "a Go program", rec: stalls(recording.Receive).threaded(1).runtime(`{"go":"go1.26.8"}`)},
		{name: "its thread waits for its own replies", rec: stalls(recording.Receive).threaded(1).noLoop()},
		{name: "it collects garbage", rec: stalls(recording.Receive).threaded(1).waits(30, 80*edgeMs,
			recording.KindCollection, nil)},
		{name: "it is throttled", rec: stalls(recording.Throttled).threaded(1).waits(30, 80*edgeMs,
			recording.KindThrottled, nil)},
		{name: "one call", rec: newEdge("redis 7.0.15").all("GET", 2000, 300e3).slowCalls(1, 80*edgeMs,
			recording.Receive).threaded(1)},
	})
}

// before adds slow calls whose time passed before their requests were sent, in a state and for something.
func (e edge) before(count int, actor, state, culprit string) edge {
	for i := range count {
		at := second + int64(i)*100*edgeMs
		e.Call(recording.Call{
			Source: recording.SourceTap, Conn: address(4000 + i%5), Op: "GET", Node: edgeNode, Slot: -1,
			Side: recording.Client, Client: fmt.Sprintf("app[%d]", app),
			IntendedNs: at, StartNs: at + 80*edgeMs, EndNs: at + 80*edgeMs + 100e3,
		}, recording.Segment{Actor: actor, State: state, FromNs: at, ToNs: at + 80*edgeMs, Culprit: culprit})
	}
	return e
}

// late says what a thread waited for with its reply in the socket.
func (e edge) late(culprit string) edge {
	for i := range 30 {
		e.slowCall(second+int64(i)*100*edgeMs, 80*edgeMs, 4000+i%5, recording.Segment{
			State: recording.OffCPU, Culprit: culprit,
		})
	}
	return e
}

func (e edge) program(comm string) edge {
	e.Snapshot(recording.Snapshot{
		Source: recording.SourceTap, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app),
		Name: recording.SnapshotProgram, Body: recording.Detail(recording.Program{Name: "app.py", Comm: comm}),
	})
	return e
}

// TestEventLoopOfKnownRuntime: the fix is for the runtime that its program is known to have.
func TestEventLoopOfKnownRuntime(t *testing.T) {
	rec := stalls(recording.Receive).threaded(1).program("node")
	rec.Index()
	f := find("client-eventloop-blocked").Explain(facts.New(rec.Recording).Nodes[0])
	if f == nil || len(f.FixSteps) != 1 || f.FixSteps[0].Library != "Node" {
		t.Errorf("%+v", f)
	}
}

func TestEventLoopElsewhere(t *testing.T) {
	calls := func() edge { return newEdge("redis 7.0.15").all("GET", 2000, 300e3) }
	const away = "netty-1" + recording.AsleepIn + "recvfrom to a socket"
	explainEdge(t, find("client-eventloop-blocked"), []edgeCase{
		{
			name: "asleep in a callback", rec: calls().before(30, recording.Client, recording.LoopWait, away),
			found: true, evidence: "asleep in recvfrom to a socket",
		},
		{
			name: "awake, and it is known where", found: true, title: "which is busy in shop.Price.total (netty-1)",
			rec: calls().before(30, recording.Client, recording.LoopWait, "netty-1").
				running(recording.ProfileCPUClock, "long shop.Price.total(java.lang.String)"),
			evidence: "the event loop was in shop.Price.total",
		},
		{
			name: "awake", rec: calls().before(30, recording.Client, recording.LoopWait, "netty-1"),
			found: true, against: "it computes, or waits for a CPU",
		},
		{name: "a connection", rec: calls().before(30, recording.App, recording.PoolWait, "")},
	})
}

func TestUnreachableAddress(t *testing.T) {
	calls := func() edge { return newEdge("redis 7.0.15").all("GET", 2000, 300e3) }
	const dead = recording.NoAnswerFrom + "[fd00::2]:6379"
	explainEdge(t, find("unreachable-address"), []edgeCase{
		{
			name: "a silent address first", rec: calls().before(30, recording.App, recording.Dial, dead),
			found: true, evidence: "30 dials to [fd00::2]:6379 came to nothing", fix: "fd00::2",
		},
		{name: "a slow dial", rec: calls().before(30, recording.App, recording.Dial, "")},
		{name: "two of two thousand, 5 ms", rec: calls()},
	})
}

// dials are dials of a process, one a second and eachMs long, to another address at the server's port, without an
// answer; opened is how many connections the server got meanwhile.
func (e edge) dials(count int, eachMs int64, calls bool, opened float64) edge {
	for i := range count {
		e.Event(recording.Event{
			TimeNs: int64(i) * second, DurationNs: eachMs * edgeMs, Source: recording.SourceHost,
			Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app), Kind: recording.KindUnansweredDial,
			Detail: recording.Detail(recording.UnansweredDial{To: "[fd00::2]:6379", Calls: calls}),
		})
	}
	e.Recording.Snapshot(recording.Snapshot{
		TimeNs: edgeEnd, Source: recording.SourceHost, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app),
		Name: recording.SnapshotWaits, Body: recording.Detail(recording.ThreadWaits{Threads: 1, Ns: edgeEnd}),
	})
	return e.info(map[string]float64{"total_connections_received": opened})
}

func TestUnreachableAddressBySockets(t *testing.T) {
	quiet := func() edge { return newEdge("redis 7.0.15") }
	explainEdge(t, find("unreachable-address"), []edgeCase{
		{
			name: "again and again", rec: quiet().dials(8, 900, true, 8), found: true,
			evidence: "8 dials of", against: "its calls were not seen", fix: "fd00::2",
		},
		{
			name: "its connections were not seen, the server got as many", rec: quiet().dials(8, 900, false, 8),
			found: true, against: "nor was a connection of it",
		},
		{name: "its connections were not seen, nor did the server get any", rec: quiet().dials(8, 900, false, 0)},
		{name: "twice", rec: quiet().dials(2, 900, true, 8)},
		{name: "a small part of its time", rec: quiet().dials(3, 300, true, 8)},
	})
	tapped := quiet().dials(8, 900, true, 8)
	tapped.tapped()
	explainEdge(t, find("unreachable-address"), []edgeCase{{name: "the tap saw no such dial", rec: tapped}})
}

func TestClientLockWait(t *testing.T) {
	calls := func() edge { return newEdge("redis 7.0.15").all("GET", 2000, 300e3) }
	explainEdge(t, find("client-lock-wait"), []edgeCase{
		{
			name: "Python", rec: calls().late(recording.LockOfProcess).program("python3").threaded(4), found: true,
			fix: "multiprocessing",
		},
		{
			name: "Python, one thread reads", found: true, fix: "py-spy",
			rec: calls().late(recording.LockOfProcess).program("python3").threaded(1),
		},
		{
			name: "Ruby", found: true, fix: "Puma",
			rec: calls().late(recording.LockOfProcess).program("ruby3.1").threaded(4),
		},
		{
			name: "Ruby by another name", found: true, fix: "rbspy",
			title:    "Ruby's lock (GVL) while their replies are in the sockets; price (shop.rb:9) holds it",
			evidence: "the thread with the lock was in price (shop.rb:9)",
			rec: calls().late(recording.LockOfProcess).program("puma").threaded(4).
				running(recording.ProfileRuby, "price (shop.rb:9)"),
		},
		{
			name: "Python by another name", found: true, title: "Python's interpreter lock", fix: "py-spy",
			rec: calls().late(recording.LockOfProcess).program("gunicorn").threaded(1).
				running(recording.ProfilePython, "price (shop.py:9)"),
		},
		{
			name: "another runtime", rec: calls().late(recording.LockOfProcess).program("java").threaded(4),
			found: true, doubted: true, against: "garbage collection",
		},
		{
			name: "its collector stopped it", rec: calls().late(recording.LockOfProcess).program("java").threaded(4).
				waits(30, 80*edgeMs, recording.KindCollection, nil),
		},
		{name: "asleep for another reason", rec: calls().late("").program("python3").threaded(4)},
		{name: "an event loop", rec: calls().late(recording.LockOfProcess).program("node").threaded(1)},
		{
			name: "a lock of a Go program", rec: calls().locked("main.fill"), found: true,
			title: "main.fill holds it", evidence: "gave it back in main.fill", fix: "in main.fill",
		},
		{name: "which nobody is known to hold", rec: calls().locked(""), found: true, fix: "less time: nothing slow"},
		{name: "while calls were slow", rec: calls().locked("main.fill").slowCalls(30, 80*edgeMs, recording.Receive)},
		{name: "while the program was throttled", rec: calls().locked("main.fill").waits(30, 80*edgeMs,
			recording.KindThrottled, nil)},
	})
}

// locked are calls before which goroutines waited for a lock that a function held.
func (e edge) locked(holder string) edge {
	for i := range 30 {
		at := second + int64(i)*100*edgeMs
		sent := at + 60*edgeMs
		e.Call(recording.Call{
			Source: recording.SourceTap, Conn: "127.0.0.1:4000", Op: "GET", Node: edgeNode, Slot: -1,
			Side: recording.Client, Client: fmt.Sprintf("app[%d]", app),
			IntendedNs: at, StartNs: sent, EndNs: sent + 300e3,
		}, recording.Segment{Actor: recording.App, State: recording.LockWait, FromNs: at, ToNs: sent, Culprit: holder},
			recording.Segment{Actor: recording.Nobody, State: recording.Unexplained, FromNs: sent, ToNs: sent + 300e3})
	}
	return e
}

func TestClientGCPause(t *testing.T) {
	explainEdge(t, find("client-gc-pause"), []edgeCase{
		{
			name: "T2: one thread", rec: stalls(recording.Receive).threaded(1).waits(30, 80*edgeMs,
				recording.KindCollection, nil).client(recording.SourceHost, "rss_bytes", 4e8, 4e8), found: true,
			evidence: "400 MB", fix: "gc.freeze",
		},
		{name: "T2: the readers sleep meanwhile", rec: stalls(recording.OffCPU).threaded(8).waits(30, 80*edgeMs,
			recording.KindCollection, nil), found: true, evidence: "collections"},
		{name: "the loop computes", rec: stalls(recording.Receive).threaded(1)},
		{name: "collections at other times", rec: stalls(recording.Receive).threaded(1).wait(recording.KindCollection,
			8*second, 80*edgeMs, app, nil)},
		{name: "between calls", rec: newEdge("redis 7.0.15").all("GET", 2000, 300e3).used(app, "app", 4000, 200, 0.1).
			waits(30, 80*edgeMs, recording.KindCollection, nil), found: true, evidence: "sent up to 80 ms late"},
		{name: "between calls, short ones", rec: newEdge("redis 7.0.15").all("GET", 2000, 300e3).
			used(app, "app", 4000, 200, 0.1).waits(30, 3*edgeMs, recording.KindCollection, nil)},
	})
}
