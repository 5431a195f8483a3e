package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestReceiverStall(t *testing.T) {
	slow := func(bytes int64) edge {
		e := newPath().host(map[string]float64{"net.RetransSegs": 20, "net.OutSegs": 1000})
		for i := range int64(10) {
			e.seen(pathClient, "GET", i*1000*edgeMs, bytes, part{"server", "exec", 1, ""}, part{
				"network", "back", 300,
				"",
			}, part{"client", "off-cpu", 10, ""})
		}
		return e
	}
	elsewhere := func(shut bool) edge {
		e := newPath()
		for i := range int64(10) {
			at, c := i*1000*edgeMs, recording.Call{
				Source: recording.SourceTap, Conn: pathClient, Op: "GET",
				Node: edgeNode, Slot: -1, ReplyBytes: 2 << 20, Side: recording.Server,
			}
			c.IntendedNs, c.StartNs, c.EndNs = at, at, at+301*edgeMs
			e.Call(c, recording.Segment{Actor: "server", State: "exec", FromNs: at, ToNs: at + edgeMs},
				recording.Segment{Actor: "unknown", State: "unexplained", FromNs: at + edgeMs, ToNs: c.EndNs})
			e.event(recording.SourceTap, recording.KindAcknowledged, c.EndNs, 100*edgeMs,
				recording.AckDetail{
					Client: pathClient, Unacked: 60_000, MinWaitNs: 100 * edgeMs, WindowClosed: shut,
					RTTMinNs: edgeMs / 5,
				})
		}
		return e
	}
	limited := map[string]float64{"sock.rwnd_limited_max_ns": 3e9, "net.TCPToZeroWindowAdv": 900}
	explainEdge(t, find("receiver-stall"), []edgeCase{
		{
			name: "the window closes", rec: slow(2 << 20).host(limited), found: true,
			evidence: "closed their window 900 times", fix: "app[7]",
		},
		{
			name: "the server's buffer is full as well", rec: newPath().seen(pathClient, "GET", 0, 2<<20,
				part{"server", "exec", 1, ""}, part{"server", "send", 900, ""}, part{"client", "off-cpu", 10, ""}).
				host(map[string]float64{"net.RetransSegs": 20, "net.OutSegs": 1000}).host(limited), found: true,
			evidence: "910 ms",
		},
		{
			name: "the window of a client on another host closes", rec: elsewhere(true), found: true,
			evidence: "1 client at other addresses", fix: "10.0.0.7",
		},
		{
			name: "the window of a client on another host is small all the time", rec: elsewhere(false).host(limited),
			found: true, evidence: "rwnd_limited", fix: "10.0.0.7",
		},
		{
			name: "the path to a client on another host is slow",
			rec:  elsewhere(false).host(map[string]float64{"sock.rwnd_limited_max_ns": 0}),
		},
		{name: "the link is slow", rec: slow(2 << 20).host(map[string]float64{"sock.rwnd_limited_max_ns": 0})},
		{
			name: "the link is slow, and the window was full once",
			rec:  slow(2 << 20).host(map[string]float64{"sock.rwnd_limited_max_ns": 0.2e9}),
		},
		{name: "small replies fit into any window", rec: slow(5000).host(limited)},
		{name: "no call waited", rec: newPath().host(limited)},
	})
}
