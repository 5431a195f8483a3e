package cause_test

import (
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

const tapTID = 4711

// What the tap records of the main thread of a node.
func tapWait(r *recording.Recording, node, kind string, at, ns int64, d recording.ThreadDetail) {
	d.TID, d.Share = tapTID, 1
	r.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: recording.SourceTap, Subject: node, Kind: kind,
		Detail: recording.Detail(d),
	})
}

func tapWork(r *recording.Recording, node string, at, ns int64, d recording.ActivityDetail) {
	d.TID = tapTID
	if d.OnCPUNs == 0 {
		d.OnCPUNs = ns
	}
	r.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: recording.SourceTap, Subject: node,
		Kind: recording.KindActivity, Detail: recording.Detail(d),
	})
}

func tapUsed(r *recording.Recording) {
	r.SetMeta(recording.MetaSource+recording.SourceTap,
		recording.Detail(recording.SourceStatus{Name: recording.SourceTap, Used: true}))
}

// tapLatencies are all calls of a command at one end, "client GET".
func tapLatencies(r *recording.Recording, node, op string, ns, calls int64) {
	h := hdrhistogram.New(1, int64(60e9), 2)
	_ = h.RecordValues(ns, calls) // within its bounds
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	r.Histogram(recording.Histogram{Second: 1, Source: recording.SourceTap, Node: node, Op: op, HDR: b})
}

// tapped says that the tap saw the main thread in a state during each stall, and 20 calls of a client that
// waited.
func (r hostCase) tapped(kind string, d recording.ThreadDetail) hostCase {
	tapUsed(r.Recording)
	tapLatencies(r.Recording, hostNode, "client GET", 1e5, 50_000)
	for at := int64(1e9); at < 8e9; at += 100e6 {
		tapWait(r.Recording, hostNode, kind, at, 60e6, d)
		r.Call(recording.Call{
			Source: recording.SourceTap, Conn: "10.0.0.7:1", Op: "GET", Node: hostNode, Side: "both",
			Client: "worker[7]", IntendedNs: at, StartNs: at, EndNs: at + 61e6,
		},
			recording.Segment{Actor: recording.Server, State: kind, FromNs: at, ToNs: at + 60e6},
			recording.Segment{Actor: recording.Server, State: recording.Exec, FromNs: at + 60e6, ToNs: at + 61e6})
	}
	return r
}

func TestHostCausesWithTheKernelSource(t *testing.T) {
	stress := recording.ThreadDetail{By: &recording.Task{PID: 7, TID: 7, Comm: "stress"}}
	for _, c := range []struct {
		name, first, evidence string
		rec                   hostCase
	}{
		{
			"throttled", "server-cfs-throttled", "tap: the quota kept the main thread off the CPU 70 times, 4.2 s in " +
				"all, up to 60 ms at a time",
			newHostCase(true).threads(1.6, 0.1).cgroup(70).stalled(recording.KindRunQueue,
				recording.ThreadDetail{}).tapped(recording.KindThrottled, recording.ThreadDetail{}),
		},
		{
			"throttled, without the host's files", "server-cfs-throttled", "the quota kept the main thread off the CPU",
			newHostCase(true).tapped(recording.KindThrottled, recording.ThreadDetail{}),
		},
		{"frozen", "process-frozen", "tap: the main thread was stopped 70 times", newHostCase(true).threads(1,
			0).tapped(recording.KindFrozen, recording.ThreadDetail{})},
		{"contention", "server-cpu-contention", "its CPU meanwhile ran stress[7] 100 %", newHostCase(true).threads(2,
			4.2).tapped(recording.KindRunQueue, stress)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rec.Index()
			d := verdict.Diagnose(c.rec.Recording, "test")
			if len(d.Findings) == 0 || d.Findings[0].Cause != c.first || d.Findings[0].ExcessShare < 0.8 ||
				d.Findings[0].Doubts > 0 {
				t.Fatalf("%s %+v", d.Summary, d.Findings)
			}
			holds(t, "evidence", texts(d.Findings[0].Evidence), c.evidence)
			if d.Latency.UserCalls != 50_000 || d.Latency.UserSlowCalls != 70 || d.Latency.Calls != 400 {
				t.Errorf("%+v", d.Latency)
			}
		})
	}
}

// worked says that the tap saw the main thread serve one read in each stall.
func (r loopCase) worked(w recording.ActivityDetail) loopCase {
	tapUsed(r.Recording)
	r.server(0, 1e6, recording.KindPoll, nil)
	w.Client, w.Process = loopClient, "cron[9]"
	if w.Calls == 0 {
		w.Calls = 1
	}
	if w.Sends {
		w.Calls = 0
	}
	for _, s := range loopSeconds {
		tapWork(r.Recording, loopNode, s*1e9+200e6, loopStall, w)
	}
	return r
}

func (r loopCase) blocked(syscall, file string) loopCase {
	tapUsed(r.Recording)
	for _, s := range loopSeconds {
		tapWait(r.Recording, loopNode, recording.KindBlocked, s*1e9+200e6, loopStall,
			recording.ThreadDetail{Syscall: syscall, File: file})
	}
	return r
}

func TestLoopCausesWithTheKernelSource(t *testing.T) {
	for cause, tests := range map[string][]loopWant{
		"slow-command": {
			{"by the kernel alone", newLoopCase().worked(recording.ActivityDetail{Op: "SORT", Args: 4}), true, false},
			{
				"with SLOWLOG", newLoopCase().worked(recording.ActivityDetail{Op: "KEYS", Args: 2}).logged("KEYS", 2,
					10),
				true, false,
			},
			{"throttled in its middle", newLoopCase().worked(recording.ActivityDetail{
				Op: "SORT", Args: 4,
				OnCPUNs: 2e6,
			}).blocked("x", ""), false, false},
			{"of constant time", newLoopCase().worked(recording.ActivityDetail{Op: "GET", Args: 2}), false, false},
			{"a pipeline", newLoopCase().worked(recording.ActivityDetail{Op: "SORT", Calls: 30_000}), false, false},
		},
		"lua-or-multi-long": {
			{"a script", newLoopCase().worked(recording.ActivityDetail{Op: "EVALSHA", Args: 4}), true, false},
			{"the last read of a transaction", newLoopCase().worked(recording.ActivityDetail{
				Op:    "HSET",
				Calls: 155,
			}).counted("exec", 1, 58_000), true, false},
		},
		"flush-sync": {{
			"by the kernel alone", newLoopCase().worked(recording.ActivityDetail{Op: "FLUSHALL", Args: 1}),
			true, false,
		}},
		"sync-free-of-big-key": {
			{"by commandstats and the kernel", newLoopCase().worked(recording.ActivityDetail{
				Op:   "DEL",
				Args: 2,
			}).counted("del", 1, 58_000), true, false},
		},
		"big-key-io": {{"in one send", newLoopCase().worked(recording.ActivityDetail{
			Sends: true,
			Bytes: 40 << 20,
		}), true, false}},
		"active-expire-cycle": {{"after a command", newLoopCase().worked(recording.ActivityDetail{
			Op:   "GET",
			Args: 2,
		}).info("expire_cycle_cpu_milliseconds", 0, 60).info("expired_keys", 0,
			1e5).info("expired_time_cap_reached_count", 0, 3), true, false}},
		"fork-latency": {{
			"after a command", newLoopCase().worked(recording.ActivityDetail{Op: "GET", Args: 2}).forks(),
			true, false,
		}},
		"aof-fsync-always": {
			{"blocked in fdatasync", newLoopCase().blocked("fdatasync", "").config("appendonly", "yes", "appendfsync",
				"always").info("aof_current_size", 1, 1e5), true, false},
			{
				"blocked in fdatasync of a known file", newLoopCase().blocked("fdatasync",
					"appendonly.aof").config("appendonly", "yes", "appendfsync", "always").info("aof_current_size", 1,
					1e5),
				true, false,
			},
			{"blocked in a page fault", newLoopCase().blocked("page fault", "").config("appendonly", "yes",
				"appendfsync", "everysec"), false, false},
		},
	} {
		t.Run(cause, func(t *testing.T) { checkLoop(t, cause, tests) })
	}
}

func (r loopCase) forks() loopCase {
	for _, s := range loopSeconds {
		r.server(s*1e9, loopStall, recording.KindFork, recording.ForkDetail{Why: "rdb", WindowNs: 1e9})
	}
	return r
}

func TestCulpritIsNamedWithItsProcess(t *testing.T) {
	d := newLoopCase().worked(recording.ActivityDetail{Op: "KEYS", Args: 2}).logged("KEYS", 2,
		10).clients(`{"id":4,"addr":"` + loopClient + `","cmd":"keys","lib_name":"jedis","lib_ver":"5.1.0"}`).diagnose()
	holds(t, "fix", strings.Join(d.Findings[0].Fix, "\n"), "KEYS from "+loopClient+" (cron[9], jedis 5.1.0) use SCAN")
	holds(t, "evidence", texts(d.Findings[0].Evidence), "tap: KEYS held the main thread 6 times, up to 60 ms (60 ms "+
		"of it on the CPU), from "+loopClient)
	holds(t, "evidence", texts(d.Findings[0].Evidence), "SLOWLOG shows KEYS too")
}

// A few slow calls among the users' hundred thousand are no finding, and the server is healthy.
func TestFewSlowCallsOfManyAreHealthy(t *testing.T) {
	r := newHostCase(false).threads(1, 0.05)
	tapUsed(r.Recording)
	tapLatencies(r.Recording, hostNode, "client GET", 1e5, 100_000)
	for i := range int64(50) {
		at := i * 100e6
		tapWork(r.Recording, hostNode, at, 8e6, recording.ActivityDetail{Op: "SORT", Calls: 1, Client: "10.0.0.8:1"})
		r.Call(recording.Call{
			Source: recording.SourceTap, Conn: "10.0.0.7:1", Op: "GET", Node: hostNode, Side: "both",
			IntendedNs: at, StartNs: at, EndNs: at + 8e6,
		},
			recording.Segment{Actor: recording.Server, State: recording.Busy, FromNs: at, ToNs: at + 8e6})
	}
	r.Index()
	if d := verdict.Diagnose(r.Recording, "test"); d.Verdict != verdict.Healthy || !strings.Contains(d.Summary,
		"50 of 100 000 calls of clients") {
		t.Errorf("%s %+v", d.Summary, d.Findings)
	}
}

func TestEdgeCausesWithTheKernelSource(t *testing.T) {
	lost := func(ns int64, state string) edge {
		e := newEdge("redis 7.0.15").kept(2e5, 0, 0).mainThread(0.1, 0)
		tapLatencies(e.Recording, edgeNode, "client GET", 2e5, 1000)
		for i := range int64(20) {
			at := i * 400 * edgeMs
			e.event(recording.SourceTap, recording.KindRetransmit, at, ns,
				recording.RetransmitDetail{Client: "10.0.0.7:1", From: "client", State: state})
			e.Call(recording.Call{
				Source: recording.SourceTap, Conn: "10.0.0.7:1", Op: "GET", Node: edgeNode,
				Side: "client", IntendedNs: at, StartNs: at, EndNs: at + 210*edgeMs,
			},
				recording.Segment{
					Actor: recording.Network, State: recording.Retransmit, FromNs: at,
					ToNs: at + 205*edgeMs,
				}, recording.Segment{
					Actor: recording.Network, State: recording.Back,
					FromNs: at + 205*edgeMs, ToNs: at + 210*edgeMs,
				})
		}
		return e
	}
	explainEdge(t, find("packet-loss-rto"), []edgeCase{
		{
			name: "calls of clients of this host", rec: lost(205*edgeMs, "established"), found: true,
			evidence: "on 1 connection the retransmission timer expired, 0 times at the server, 20 times at clients",
		},
	})
	explainEdge(t, find("packet-loss-rto"), []edgeCase{
		{name: "tail probes to clients that do not read", rec: newEdge("redis 7.0.15").kept(2e5, 0, 0).mainThread(0.1,
			0).host(map[string]float64{
			"net.RetransSegs": 53, "net.TCPLossProbes": 53,
			"net.OutSegs": 12_000,
		}).level(recording.SourceHost, "sock.retransmitting", 1)},
		{name: "timeouts of other callers", rec: newEdge("redis 7.0.15").kept(2e5, 0, 0).mainThread(0.1,
			0).host(map[string]float64{
			"net.RetransSegs": 53, "net.TCPLossProbes": 12,
			"net.OutSegs": 12_000,
		}).level(recording.SourceHost, "sock.retransmitting", 1), found: true},
	})
	churn := newEdge("redis 7.0.15").kept(2e5, 0, 0).fresh(1e5,
		3e5).info(map[string]float64{
		"total_connections_received": 5000,
		"total_commands_processed":   10_000,
	}).level(recording.SourceServer, "connected_clients", 10)
	for i := range int64(100) {
		churn.event(recording.SourceTap, recording.KindClose, i*50*edgeMs, 0, recording.ConnDetail{
			Client: "10.0.0.7:1",
			Comm:   "php-fpm", Side: "server", AgeNs: 3e6, Calls: 2,
		})
	}
	explainEdge(t, find("short-lived-connections"), []edgeCase{
		{name: "the processes of connections", rec: churn, found: true, evidence: "with 2.0 commands each, " +
			"half of " +
			"them within 3 ms; 100 % of them by php-fpm"},
	})
}
