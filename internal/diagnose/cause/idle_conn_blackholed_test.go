package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestIdleConnectionBlackholed(t *testing.T) {
	// Calls at 5 s on connections that were idle for that long or not; retransmitted, and given up at 6 s, or answered.
	silent := func(e edge, n int, idle bool, times int64, answered bool) edge {
		for i, c := range clients(n) {
			sent := 5000*edgeMs + int64(i)
			e.event(recording.SourceTap, recording.KindOpen, 1, 0, recording.ConnDetail{
				Client: c, PID: 7, Comm: "app",
				Side: recording.Client,
			})
			e.looked(c, 1000*edgeMs, 1, edgeMs, 0)
			if idle {
				e.looked(c, sent, 1, edgeMs, 4000*edgeMs)
			} else {
				e.looked(c, 4000*edgeMs, 300, 300*edgeMs, 2700*edgeMs).looked(c, sent, 400, 400*edgeMs, 3300*edgeMs)
			}
			for k := range times {
				e.event(recording.SourceTap, recording.KindRetransmit, sent, (200*edgeMs)<<k,
					recording.RetransmitDetail{
						Client: c, From: recording.Client, State: "established", Unacked: 24,
						Total: k + 1,
					})
			}
			if answered {
				e.seen(c, "GET", sent, 5, part{"network", "retransmit", 850, ""})
			} else {
				e.event(recording.SourceTap, recording.KindClose, 6000*edgeMs, 0, recording.ConnDetail{
					Client: c,
					PID:    7, Comm: "app", Side: recording.Client, Calls: 1, InFlightNs: 1000 * edgeMs, Waiting: 1,
				})
			}
		}
		return e
	}
	busy := func() edge {
		return newPath().lane(pathOther, 50, edgeMs/2, 19*edgeMs).config(map[string]string{"tcp-keepalive": "300"})
	}
	explainEdge(t, find("idle-conn-blackholed"), []edgeCase{
		{
			name: "idle connections are gone", rec: silent(busy(), 4, true, 3, false), found: true,
			evidence: "for at least 4 s", fix: "CONFIG SET tcp-keepalive 2",
		},
		{name: "a segment was lost", rec: silent(busy(), 4, true, 1, true)},
		{name: "lost three times, and answered", rec: silent(busy(), 4, true, 3, true)},
		{name: "busy connections lose as well", rec: silent(busy(), 4, false, 3, false)},
		{
			name: "no connection has an answer", rec: silent(newPath(), 4, true, 3, false), found: true,
			against: "the whole path",
		},
		{name: "nothing lost", rec: busy()},
	})
}
