package cause

import "testing"

func TestReceiverStall(t *testing.T) {
	slow := func(bytes int64) edge {
		e := newPath().host(map[string]float64{"net.RetransSegs": 20, "net.OutSegs": 1000})
		for i := range int64(10) {
			e.seen(pathClient, "GET", i*1000*edgeMs, bytes, part{"server", "exec", 1, ""}, part{"network", "back", 300, ""}, part{"client", "off-cpu", 10, ""})
		}
		return e
	}
	limited := map[string]float64{"sock.rwnd_limited_max_ns": 3e9, "net.TCPToZeroWindowAdv": 900}
	explainEdge(t, receiverStall, []edgeCase{
		{name: "the window closes", rec: slow(2 << 20).host(limited), found: true, min: 0.9, evidence: "900 times a receiver", fix: "app[7]"},
		{name: "the server's buffer is full as well", rec: newPath().seen(pathClient, "GET", 0, 2<<20, part{"server", "exec", 1, ""}, part{"server", "send", 900, ""}, part{"client", "off-cpu", 10, ""}).
			host(map[string]float64{"net.RetransSegs": 20, "net.OutSegs": 1000}).host(limited), found: true, min: 0.9, evidence: "910 ms"},
		{name: "the link is slow", rec: slow(2 << 20).host(map[string]float64{"sock.rwnd_limited_max_ns": 0})},
		{name: "the link is slow, and the window was full once", rec: slow(2 << 20).host(map[string]float64{"sock.rwnd_limited_max_ns": 0.2e9})},
		{name: "small replies fit into any window", rec: slow(5000).host(limited)},
		{name: "nobody waited", rec: newPath().host(limited)},
	})
}
