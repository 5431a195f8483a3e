package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/recording"
)

const (
	refusedText = "connecting to 10.0.0.5:6379: connection refused: nothing listens on 10.0.0.5:6379; check that the " +
		"server runs, -h and -p"
	closedText  = "connecting to 10.0.0.5:6379: 10.0.0.5:6379 accepts and resets the connection; a proxy"
	noReplyText = "10.0.0.5:6379: connected, but no reply to CLIENT within 5s: the process may be frozen, or this is " +
		"no Redis"
	unfinishedText = "unfinished when the watch ended"
)

// goneAt is ten seconds of a server that answers until a time and, after another, again.
func goneAt(fromNs, toNs int64) edge {
	e := newEdge("redis 7.0.15")
	for at := int64(0); at < edgeEnd; at += 50 * edgeMs {
		if at < fromNs || at >= toNs {
			e.call("kept", at, edgeMs/10)
		}
	}
	return e
}

// failing are attempts to connect, two per second, that fail with a text.
func (e edge) failing(text string, fromNs, toNs int64) edge {
	for at := fromNs; at < toNs; at += 500 * edgeMs {
		e.event(recording.SourceProbe, recording.KindError, at, 0, recording.ErrorDetail{
			Phase: "connect", Message: text,
		})
		e.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "fresh", Op: "PING", Node: edgeNode, Slot: -1,
			IntendedNs: at - edgeMs, StartNs: at - edgeMs, EndNs: at, Error: text,
		})
	}
	return e
}

// waiting are calls that were due from a time on and had no reply when the watch ended. A fresh one spent its first ms
// on the connect, or all of its time.
func (e edge) waiting(fromNs int64, connected bool) edge {
	for at := fromNs; at < edgeEnd; at += 500 * edgeMs {
		to := at + edgeMs
		if !connected {
			to = edgeEnd
		}
		for _, conn := range []string{"kept", "fresh"} {
			c := recording.Call{
				Source: recording.SourceProbe, Conn: conn, Op: "PING", Node: edgeNode, Slot: -1,
				IntendedNs: at, StartNs: at, EndNs: edgeEnd, Error: unfinishedText,
			}
			if conn == "kept" {
				e.Call(c)
				continue
			}
			e.Call(c, recording.Segment{Actor: "app", State: "dial", Culprit: "connect", FromNs: at, ToNs: to})
		}
	}
	return e
}

func TestServerUnavailable(t *testing.T) {
	tapClose := func(e edge, d recording.ConnDetail, count int) edge {
		tapUsed(e.Recording)
		for i := range count {
			d.Client = fmt.Sprint("127.0.0.1:", 40000+i)
			e.event(recording.SourceTap, recording.KindClose, 6e9+int64(i)*edgeMs, 0, d)
		}
		return e
	}
	refusedDial := recording.ConnDetail{
		Side: "client", PID: 7, Comm: "app", DialNs: 1e5, Reason: recording.CloseRefused,
	}
	explainEdge(t, find("server-unavailable"), []edgeCase{
		{
			name: "T0: gone for good", rec: goneAt(6e9, edgeEnd).failing(refusedText, 6.1e9, edgeEnd), found: true,
			evidence: "for 4.05 s it answered nobody, and it had not answered again",
			against:  "the host of the server was not watched", fix: "journalctl",
		},
		{
			name: "T0: gone for two seconds", rec: goneAt(3e9, 5e9).failing(refusedText, 3.1e9, 5e9), found: true,
			evidence: "then it answered again",
		},
		{
			name: "T0: gone just before the end, without the probe",
			rec: newEdge("redis 7.0.15").polledUntil(9e9).event(recording.SourceServer, recording.KindError, 9.9e9, 0,
				recording.ErrorDetail{Phase: "connect", Message: refusedText}), found: true,
			evidence: "for 1.00 s it answered nobody",
		},
		{
			name: "T0: connections are reset", rec: goneAt(6e9, edgeEnd).failing(closedText, 6.1e9, edgeEnd),
			found: true, evidence: "closed or reset before a reply", fix: "a proxy or a load balancer",
		},
		{
			name: "T0: the SYN has no answer", rec: goneAt(6e9, edgeEnd).waiting(6e9, false), found: true,
			evidence: "7 new connections meanwhile: not answered", fix: "a firewall",
		},
		{
			name: "T0: accepted and silent", rec: goneAt(6e9, edgeEnd).waiting(6e9, true), found: true,
			evidence: "accepted and not answered", fix: "SIGSTOP",
		},
		{
			name: "T0: no reply to the login", rec: goneAt(3e9, 9e9).failing(noReplyText, 8e9, 9e9).
				call("kept", 3e9, 6e9), found: true, evidence: "then it answered again",
		},
		{
			name: "T1: its process ended", rec: goneAt(6e9, edgeEnd).failing(refusedText, 6.1e9, edgeEnd).
				event(recording.SourceHost, recording.KindProcessEnded, 6e9, 0,
					recording.ServerProcess{PID: 4711, Comm: "redis-server"}), found: true,
			evidence: "its process redis-server[4711] ended 6.00 s after the watch began",
		},
		{
			name: "T2: without the probe, clients are refused", rec: tapClose(newEdge("redis 7.0.15").
				polledUntil(5e9), refusedDial, 20), found: true,
			evidence: "20 connections of clients could not be made, most of app[7]",
		},
		{
			name: "T1: it was stopped", rec: goneAt(6e9, edgeEnd).waiting(6e9, true).
				event(recording.SourceHost, recording.KindFrozen, 6e9, 4e9, recording.ThreadDetail{TID: 1, Share: 1}),
		},
		{
			name: "one connection was closed", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).
				event(recording.SourceProbe, recording.KindError, 5e9, 0, recording.ErrorDetail{
					Phase: "command", Message: "10.0.0.5:6379: the connection was closed before the reply to GET",
				}),
		},
		{
			name: "new connections fail, open ones are served",
			rec:  newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).failing(noReplyText, 1e9, 9e9),
		},
		{
			name: "another host that resolves nothing", rec: goneAt(6e9, edgeEnd).failing(
				"connecting to cache:6379: name not found: DNS has no address for \"cache\"", 6.1e9, edgeEnd),
		},
		{
			name: "it refuses calls", rec: goneAt(6e9, edgeEnd).event(recording.SourceProbe, recording.KindError,
				7e9, 0, recording.ErrorDetail{Phase: "handshake", Code: "LOADING", Message: "LOADING it loads"}),
		},
		{name: "a call of one second", rec: goneAt(6e9, 7e9).call("kept", 6e9, 1e9)},
		{name: "healthy", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).fresh(edgeMs, edgeMs)},
	})
}

// polledUntil has answers to INFO, one per second, until a time.
func (e edge) polledUntil(ns int64) edge {
	for at := int64(0); at <= ns; at += 1e9 {
		e.Sample(recording.Sample{
			TimeNs: at, Source: recording.SourceServer, Subject: edgeNode, Name: "uptime_in_seconds",
			Value: 100 + float64(at/1e9),
		})
	}
	return e
}

func TestServerRestarted(t *testing.T) {
	restart := map[string]any{"run_id_before": "aa", "run_id_after": "bb", "uptime_seconds": 1}
	loadingFor := func(e edge, from, to int64) edge {
		for at := from; at < to; at += 50 * edgeMs {
			e.Call(recording.Call{
				Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: edgeNode, Slot: -1,
				IntendedNs: at, StartNs: at, EndNs: at + edgeMs/10, Error: "LOADING",
			})
		}
		return e
	}
	loading := func(e edge) edge { return loadingFor(e, 4e9, 7e9) }
	process := func(e edge, kind string, at int64, pid int) edge {
		return e.event(recording.SourceHost, kind, at, 0, recording.ServerProcess{PID: pid, Comm: "redis-server"})
	}
	explainEdge(t, find("server-restarted"), []edgeCase{
		{
			name: "T0: another run_id", rec: goneAt(3e9, 5e9).event(recording.SourceServer, recording.KindRestart,
				4e9, 0, restart), found: true, evidence: "INFO has another run_id",
			fix: "let a replica take over",
		},
		{
			name: "T0: and it loads its data", rec: loading(goneAt(3e9, 7e9)).event(recording.SourceServer,
				recording.KindRestart, 4e9, 0, restart), found: true,
			evidence: "it then loaded its data for 2.95 s", fix: "loading:0",
		},
		{
			name: "T1: it is back at once, and answers late while it loads", rec: process(process(loadingFor(loadingFor(
				goneAt(3.9e9, 5.8e9), 4e9, 4.5e9), 5.4e9, 5.8e9), recording.KindProcessEnded, 3.8e9, 10),
				recording.KindProcessFound, 3.9e9, 11), found: true,
			evidence: "it answered nobody for 150 ms meanwhile",
		},
		{
			name: "T0: a server without run_id", rec: goneAt(3e9, 5e9).event(recording.SourceServer,
				recording.KindRestart, 4e9, 0, map[string]any{"uptime_seconds": 1}), found: true,
			evidence: "its uptime went back",
		},
		{
			name: "T1: another process", rec: process(process(goneAt(3e9, 5e9), recording.KindProcessEnded, 3e9, 10),
				recording.KindProcessFound, 5e9, 11), found: true,
			evidence: "another process listens there, its process id is 11 instead of 10",
		},
		{name: "T1: it ended for good", rec: process(goneAt(3e9, edgeEnd), recording.KindProcessEnded, 3e9, 10)},
		{name: "its counters were reset", rec: goneAt(3e9, 3e9).event(recording.SourceServer, "stats-reset", 4e9, 0,
			struct{}{})},
		{name: "healthy", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0)},
	})
}
