package cause_test

import (
	"testing"

	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

func TestOutputBufferKill(t *testing.T) {
	limits := func(e edge) edge {
		return e.config(map[string]string{
			"client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
			"timeout":                    "0",
		}).info(map[string]float64{"connected_clients": 0})
	}
	subscriber := caller.Client{ID: 7, Addr: pathClient, Flags: "P", Cmd: "subscribe"}
	counted := func(kills float64) edge {
		return limits(newPath()).info(map[string]float64{"client_output_buffer_limit_disconnections": kills})
	}
	closed := func(by string, calls int64, largest float64) edge {
		return limits(newPath()).clientsOf(subscriber).level(recording.SourceServer, "client_recent_max_output_buffer",
			largest).event(recording.SourceTap, recording.KindClose, 5e9, 0, recording.ConnDetail{
			Client: pathClient, Side: recording.Client, PID: 7, Comm: "app", AgeNs: 4e9, IdleNs: 1e6, Calls: calls,
			By: by,
		})
	}
	cut := func(limit string, waiting int, largest float64) edge {
		return newPath().config(map[string]string{
			"client-output-buffer-limit": "normal " + limit + " 0 0 slave 268435456 67108864 60 pubsub 0 0 0",
			"timeout":                    "0",
		}).level(recording.SourceServer, "client_recent_max_output_buffer", largest).
			event(recording.SourceTap, recording.KindClose, 5e9, 0, recording.ConnDetail{
				Client: pathClient, Side: recording.Server, PID: 7, Comm: "app", AgeNs: 4e9, IdleNs: 1e6, Calls: 50,
				By: recording.Server, Waiting: waiting, Op: "GET",
			})
	}
	full := subscriber
	full.OMem = 20 << 20
	explainEdge(t, find("output-buffer-kill"), []edgeCase{
		{
			name: "a subscriber, by the server's count", rec: counted(3).clientsOf(full), found: true,
			evidence: "(pubsub) had 21 MB in its output buffer", fix: "thread that does nothing else",
		},
		{
			name: "a replica", rec: counted(1).info(map[string]float64{"connected_slaves": 2, "sync_full": 1}),
			found:    true,
			evidence: "synchronised from the start once", fix: "slave 536870912 134217728 60",
		},
		{
			name: "of which class is not known", rec: counted(1).clientsOf(subscriber).info(map[string]float64{
				"connected_slaves": 2,
			}), found: true, fix: "Read less at once",
		},
		{name: "none was counted", rec: counted(0).clientsOf(full)},
		{
			name: "before 7.4", rec: closed(recording.Server, 0, 33e6), found: true,
			evidence: "connections without a call", against: "does not count",
		},
		{name: "before 7.4, the client closed it", rec: closed(recording.Client, 0, 33e6)},
		{name: "before 7.4, a connection with calls", rec: closed(recording.Server, 50, 33e6)},
		{name: "before 7.4, buffers are small", rec: closed(recording.Server, 0, 1e6)},
		{
			name: "before 7.4, CLIENT KILL",
			rec:  closed(recording.Server, 0, 33e6).info(map[string]float64{"cmdstat_client|kill.calls": 1}),
		},
		{
			name: "before 7.4, a large reply", rec: cut("200000", 1, 200048), found: true,
			evidence: "with a call that had no reply yet", against: "does not count", fix: "Read less at once",
		},
		{
			name: "before 7.4, a large reply beside a replica", rec: cut("200000", 1, 200048).info(map[string]float64{
				"connected_slaves": 1,
			}), found: true, fix: "Read less at once",
		},
		{name: "before 7.4, every call had its reply", rec: cut("200000", 0, 200048)},
		{name: "before 7.4, replies are small", rec: cut("200000", 1, 20_000)},
		{name: "before 7.4, no limit", rec: cut("0", 1, 200048)},
		{name: "nothing", rec: limits(newPath())},
	})
}
