//go:build linux

package tap

import (
	"fmt"
	"net/netip"
	"testing"

	"slowpath/internal/recording"
)

// churner makes the reports of connections that come and go, each with one slow call seen from both ends.
type churner struct {
	b           *recorder
	now         uint64
	next        uint64 // connection
	clientFirst bool   // the client reads before the server has left its send
	unseen      uint64 // calls before the slow one that the client's end does not report
}

const churnPort = 6379

// Each connection lasts this long, and the next begins when it ends: a thousand per second.
const churnNs = 1e6

func newChurner(connections int) (*churner, *recording.Recording) {
	rec := recording.New()
	server := netip.MustParseAddrPort("10.0.0.1:6379")
	o := Options{Sink: rec, Slow: DefaultSlow, Nodes: []Node{{Address: "server", Remote: server}}}
	o.Connections = connections
	return &churner{b: newRecorder(o, func(ns uint64) int64 { return int64(ns) },
		func(uint16) nodeOp { return nodeOp{name: "GET"} }), now: 1e9}, rec
}

// one is a connection of its own process, from another port and address than any other; close says whether its end is
// reported.
func (c *churner) one(close bool) {
	c.next++
	i := c.next
	at := func(role kernelRole) kernelAddr {
		client, server := [16]uint8{10: 0xff, 11: 0xff, 12: 10, 13: 1, 14: uint8(i >> 14), 15: uint8(i >> 6)},
			[16]uint8{10: 0xff, 11: 0xff, 12: 10, 15: 1}
		a := kernelAddr{
			Family: 2, Role: role, Laddr: client, Raddr: server, Lport: uint16(40_000 + i&0x3f),
			Rport: churnPort,
		}
		if role == roleServer {
			a.Laddr, a.Raddr, a.Lport, a.Rport = server, client, churnPort, a.Lport
		}
		return a
	}
	cookie := func(role kernelRole) uint64 { return i*2 + uint64(role) }
	tgid := map[kernelRole]uint32{roleServer: 1, roleClient: uint32(firstPID + i)}
	opened := c.now
	conn := func(kind kernelEventType, role kernelRole) {
		e := kernelConnEvent{
			Type: kind, Role: role, Tid: tgid[role], Tgid: tgid[role], Addr: at(role),
			Conn: cookie(role), Now: c.now, Opened: opened, LastIn: c.now, LastOut: c.now,
		}
		if kind != evClose {
			copy(e.Comm[:], fmt.Sprintf("app%d", i))
		}
		c.b.conn(&e)
	}
	conn(evOpen, roleClient)
	conn(evOpen, roleServer)
	conn(evStatus, roleClient)
	ends := []kernelRole{roleServer, roleClient}
	if c.clientFirst {
		ends = []kernelRole{roleClient, roleServer}
	}
	for _, role := range ends {
		e := kernelCallEvent{
			Type: evCall, Role: role, Tid: tgid[role], Tgid: tgid[role], Addr: at(role),
			Conn: cookie(role), Number: 1, Seq: 100,
			At: [4]uint64{c.now, c.now, c.now, c.now + 10e6},
		}
		if role == roleClient {
			e.Number += c.unseen
		}
		c.b.call(&e)
	}
	c.b.offCPU(&kernelOffcpuEvent{
		State: runnable, Tid: tgid[roleClient], Tgid: tgid[roleClient], From: c.now,
		To: c.now + 1e6,
	})
	c.b.retransmit(&kernelRetransEvent{Type: evRetrans, Addr: at(roleServer), Now: c.now, LastOut: c.now})
	c.now += churnNs
	if close {
		conn(evClose, roleClient)
		conn(evClose, roleServer)
	}
	if c.next%50 == 0 {
		c.b.settle(int64(c.now))
	}
}

// sizes are how much the recorder keeps, by map.
func (c *churner) sizes() map[string]int {
	b := c.b
	return map[string]int{
		"clients": len(b.clients), "localClients": len(b.localClients),
		"retransmissions": len(b.retransmissions), "ended": len(b.ended), "conns": len(b.conns),
		"serverViews": len(b.serverViews), "clientViews": len(b.clientViews),
		"handshakes": len(b.handshakes), "reportedPID": len(b.reportedPID), "reportedChains": len(b.reportedChains),
		"reportedTransactions": len(b.reportedTransactions),
		"names":                len(b.names), "readers": len(b.readers),
		"idle": len(b.idle), "threads": len(b.threads), "serving": len(b.serving),
	}
}

// firstPID is beyond those of the kernel (2^22), this test's own among them.
const firstPID = 1 << 23

// TestChurn: connections that come and go are dropped, after their calls were joined and named.
func TestChurn(t *testing.T) {
	c, rec := newChurner(0)
	const conns = 20_000
	perSecond := int(1e9 / churnNs)
	for range conns {
		c.one(true)
		for name, n := range c.sizes() {
			most := perSecond * int(keepFor) * 3 / 2 / 1e9 // and what one round of settle leaves
			switch name {
			case "names", "readers", "idle":
				most += maxIdle
			case "threads":
				most += maxThreadLogs
			}
			if n > most {
				t.Fatalf("%d %s after %d connections, at most %d were expected: %v", n, name, c.next, most, c.sizes())
			}
		}
	}
	c.b.settle(int64(c.now) + keepFor + 1)
	for name, n := range c.sizes() {
		switch name {
		case "clients", "localClients", "retransmissions", "serverViews", "handshakes", "reportedPID",
			"reportedChains", "reportedTransactions", "ended", "conns":
			if n != 0 {
				t.Errorf("%d %s are left when all connections have ended", n, name)
			}
		}
	}
	if len(rec.Calls) != conns {
		t.Errorf("%d calls of %d", len(rec.Calls), conns)
	}
	for i, call := range rec.Calls {
		if want := fmt.Sprintf("app%d[%d]", i+1, firstPID+i+1); call.Side != "both" || call.Client != want {
			t.Fatalf("call %d is seen from %s, of %q, not of %q", i, call.Side, call.Client, want)
		}
	}
	c.b.settle(int64(c.now) + keepThread + 1)
	if n := len(c.b.threads); n != 0 {
		t.Errorf("%d threads are remembered that did nothing for two minutes", n)
	}
}

// TestChurnWithoutEnds: where the ends of connections are not reported, what is kept is bounded, and what is lost for
// it counted.
func TestChurnWithoutEnds(t *testing.T) {
	const most, more = 1000, 10_000 // connections that are followed, and those beyond the ones that are kept
	c, _ := newChurner(most)
	const conns = 2*most + more
	for range conns {
		c.one(false)
	}
	for name, n := range c.sizes() {
		limit := 2*most + maxIdle
		if name == "threads" {
			limit = maxThreadLogs + 50 // of one round of settle
		}
		if n > limit {
			t.Errorf("%d %s, at most %d were expected", n, name, limit)
		}
	}
	if c.b.dropped < more {
		t.Errorf("%d were dropped", c.b.dropped)
	}
}

// TestClientFirst: a client's view that comes before the server's waits for it.
func TestClientFirst(t *testing.T) {
	c, rec := newChurner(0)
	c.clientFirst = true
	const conns = 60
	for range conns {
		c.one(true)
	}
	c.b.settle(1 << 62)
	if len(rec.Calls) != conns {
		t.Errorf("%d calls of %d", len(rec.Calls), conns)
	}
	for _, call := range rec.Calls {
		if call.Side != "both" {
			t.Fatalf("a call is seen from the %s alone", call.Side)
		}
	}
}
