//go:build linux

package tap

import (
	"net/netip"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// TestRemoteCallers: calls of other hosts are counted by host from the server's end, also those of connections that
// were there before the watch and stay; those of this host are not: their own end has them.
func TestRemoteCallers(t *testing.T) {
	rec, server := recording.New(), netip.MustParseAddrPort("10.0.0.1:6379")
	r := newRecorder(Options{Clock: clock.New(), Sink: rec, Nodes: []Node{{Address: "redis", Remote: server}}},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
	event := func(kind kernelEventType, role kernelRole, conn uint64, from string, calls uint64) {
		client := netip.MustParseAddrPort(from)
		e := kernelConnEvent{Type: kind, Role: role, Conn: conn, Calls: calls, NoCalls: 1, Now: 1, Tgid: 7}
		e.Addr = kernelAddr{Role: role, Lport: server.Port(), Laddr: server.Addr().As16(), Rport: client.Port()}
		e.Addr.Raddr = client.Addr().As16()
		if role == roleClient {
			e.Addr.Lport, e.Addr.Rport = e.Addr.Rport, e.Addr.Lport
			e.Addr.Laddr, e.Addr.Raddr = e.Addr.Raddr, e.Addr.Laddr
		}
		r.conn(&e)
	}
	event(evStatus, roleServer, 1, "10.0.0.7:4001", 11)
	event(evStatus, roleServer, 2, "10.0.0.7:4002", 6)
	event(evStatus, roleServer, 1, "10.0.0.7:4001", 31)
	event(evStatus, roleClient, 3, "10.0.0.8:4003", 100) // in a container of this host
	event(evStatus, roleServer, 4, "10.0.0.8:4003", 100)
	r.writeRemote(1)
	event(evClose, roleServer, 1, "10.0.0.7:4001", 41)
	r.writeRemote(2)
	r.writeRemote(3)
	rec.Index()
	names := rec.Names(recording.SourceTap, "redis", recording.CallsFromPrefix)
	s := rec.Series(recording.SourceTap, "redis", recording.CallsFromPrefix+"10.0.0.7")
	if len(names) != 1 || len(s) != 2 || s[0].Value != 35 || s[1].Value != 45 {
		t.Errorf("%v: %v", names, s)
	}
}
