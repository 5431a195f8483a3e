package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

// retried is a caller with attempts that end after a timeout, each followed by another on a new connection; others
// are answered at once.
func retried(timeout, pause int64, change func(i int, k *recording.ConnDetail, h *recording.HandshakeDetail)) edge {
	e := newEdge("redis 7.0.15").kept(edgeMs/5, 0, 0).all("GET", 3000, edgeMs/5)
	for port := range 5 { // 60 calls per second each, that take 0.2 ms
		e.used(app, "app", 4000+port, 60, 0.012)
	}
	for i := range 12 {
		at := second/2 + int64(i)*600*edgeMs
		k := recording.ConnDetail{
			Client: address(5000 + i), PID: app, Comm: "app", Side: recording.Client,
			DialNs: dialNs,
		}
		h := recording.HandshakeDetail{
			Client: k.Client, PID: app, Comm: "app", Side: recording.Client, DialNs: dialNs,
			RoundTrips: 1, Ops: []string{"HELLO"}, Op: "GET", Bytes: 25,
		}
		k.Op, k.OpBytes, k.Waiting, k.By, k.Calls, k.IdleNs, k.InFlightNs = "GET", 25, 1, recording.Client, 20,
			timeout+int64(i%3)*edgeMs/5, timeout
		k.AgeNs = 600*edgeMs - pause
		if change != nil {
			change(i, &k, &h)
		}
		e.event(recording.SourceTap, recording.KindOpen, at, 0, recording.ConnDetail{
			Client: k.Client, PID: app,
			Comm: "app", Side: recording.Client, DialNs: dialNs,
		})
		e.event(recording.SourceTap, recording.KindHandshake, at-dialNs, dialNs+edgeMs, h)
		if end := at + 600*edgeMs - pause; k.By != "" {
			e.event(recording.SourceTap, recording.KindClose, end, 0, k)
		}
	}
	return e
}

// stalled are attempts that all end together: no call is answered meanwhile.
func stalled(timeout int64) edge {
	e := newEdge("redis 7.0.15")
	for i := range 20 {
		from := second/2 + int64(i/5)*2*second
		e.conn(life{
			port: 5000 + i, from: from, to: from + second, work: 100, callNs: edgeMs / 5, waiting: 1,
			idleNs: timeout,
		})
		e.conn(life{port: 6000 + i, from: from + second + edgeMs, work: 100, callNs: edgeMs / 5})
	}
	return e
}

func TestHiddenRetriesBackoff(t *testing.T) {
	busy := func() edge { // as many calls come just in time as come too late
		return retried(300*edgeMs, 20*edgeMs, nil).all("GET", 20, 200*edgeMs)
	}
	explainEdge(t, find("hidden-retries-backoff"), []edgeCase{
		{
			name: "T2: 300 ms, and again", rec: retried(300*edgeMs, 20*edgeMs, nil), found: true,
			evidence: "with the same command of the same length, 19.9 ms later", against: "keys are not read",
			fix: "MaxRetries",
		},
		{
			name: "T2: the library by its name", rec: retried(300*edgeMs, 20*edgeMs,
				nil).snapshot(recording.SourceServer,
				"clients", `{"id":1,"addr":"10.0.0.9:1","lib_name":"redis-py","lib_ver":"7.1.0"}`), found: true,
			evidence: "retries 3 times by default, 1 to 10 s apart", fix: "retry to Retry(",
		},
		{
			name: "T2: what followed was not seen", rec: retried(300*edgeMs, 20*edgeMs,
				func(_ int, _ *recording.ConnDetail, h *recording.HandshakeDetail) { h.Op = "SET" }), found: true,
			against: "what followed was not seen",
		},
		{name: "the server is late, and most replies come in time", rec: busy()},
		{name: "the server answers nobody meanwhile", rec: stalled(300 * edgeMs)},
		{name: "commands that are meant to wait", rec: retried(300*edgeMs, 20*edgeMs,
			func(_ int, k *recording.ConnDetail, _ *recording.HandshakeDetail) { k.Op = "BLPOP" })},
		{name: "closed between calls", rec: retried(300*edgeMs, 20*edgeMs, func(_ int, k *recording.ConnDetail,
			_ *recording.HandshakeDetail,
		) {
			k.Waiting = 0
		})},
		{name: "one that gave up", rec: retried(300*edgeMs, 20*edgeMs, func(i int, k *recording.ConnDetail,
			_ *recording.HandshakeDetail,
		) {
			if i > 0 {
				k.By = ""
			}
		})},
	})
}

// Replies that never come, or a timeout that is too short: what others got meanwhile shows which.
func TestRetriesAndTimeoutsAreToldApart(t *testing.T) {
	explainEdge(t, find("timeout-discard-churn"), []edgeCase{
		{name: "replies that never come", rec: retried(300*edgeMs, 20*edgeMs, nil)},
		{name: "a server that is late", rec: stalled(300 * edgeMs), found: true},
	})
}
