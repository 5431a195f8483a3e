//go:build linux

package tap

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// TestOthersServed: all connections are followed again after one read from one that is left out took long, and not
// after many.
func TestOthersServed(t *testing.T) {
	for others, widened := range map[uint32]bool{1: true, 1000: false} {
		r := newRecorder(Options{Slow: 5 * time.Millisecond, MinWork: time.Millisecond, Nodes: []Node{{PID: 50}}},
			func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
		r.serving[50], r.sample.leftOut = r.Nodes[0], 1
		r.activity(&kernelActivityEvent{
			Tgid: 50, Tid: 50, Activity: kernelActivity{From: 1e9, To: 1.02e9, Others: others},
		})
		if (r.sample.widened != 0) != widened {
			t.Errorf("%d reads in 20 ms: widened at %d", others, r.sample.widened)
		}
	}
}

// TestNoReplyOnFollowed: a call waits for its reply at the end of a watch, unless its connection was left out: then its
// reply may have come.
func TestNoReplyOnFollowed(t *testing.T) {
	for leftOut, want := range map[bool]int{false: 1, true: 0} {
		rec := recording.New()
		r := newRecorder(Options{Slow: 5 * time.Millisecond, Nodes: []Node{{PID: 50}}, Sink: rec},
			func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
		addr := kernelAddr{Family: 2, Role: roleServer, Rport: 1000}
		e := kernelConnSnapshot{Addr: addr, Tgid: 50, From: 1e9, Now: 8e9}
		client, _ := endsOf(&e.Addr)
		r.sample.conns[client] = &sampleConn{told: leftOut}
		r.noReply(&e)
		if len(rec.Calls) != want {
			t.Errorf("left out %v: %d calls", leftOut, len(rec.Calls))
		}
	}
}

// TestConnSample: which connections are left out, and when they are followed again.
func TestConnSample(t *testing.T) {
	client := func(i int) clientEnd {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i / 100)})
		return clientEnd{AddrPort: netip.AddrPortFrom(addr, uint16(1000+i))}
	}
	ports, told := map[uint16]bool{}, 0
	s := newConnSample(0.03, 1000)
	s.put = func(port uint16, leftOut bool) bool { ports[port] = leftOut; return true }
	s.tell = func(clientEnd) { told++ }
	out := func() (n int) {
		for _, leftOut := range ports {
			if leftOut {
				n++
			}
		}
		return n
	}
	now, calls := int64(0), uint64(0)
	// second lets each connection that is followed make so many calls
	second := func(conns, each int) {
		now += 1e9
		for i := range conns {
			if !ports[client(i).Port()] {
				calls += uint64(each)
				s.seen(client(i), roleServer, 0, calls, now)
			}
		}
		s.adjust(calls, now)
	}
	s.measured(time.Millisecond, 2000) // 500 ns each
	s.measured(time.Second, 10)        // too few calls
	second(100, 0)
	// 100 connections make 240 000 calls: 12 % of a core
	for range 20 {
		second(100, 2400)
	}
	if n := out(); n < 60 || n > 85 || n != s.leftOut || told < n {
		t.Fatalf("%d of 100 connections are left out, by its own count %d, %d told", n, s.leftOut, told)
	}
	for range 20 {
		second(100, 100) // 0.5 % of a core
	}
	if n := out(); n != 0 {
		t.Errorf("%d connections are still left out", n)
	}
	// a process with one connection keeps it
	s.seen(client(150), roleServer, 77, 1, now)
	for range 20 {
		calls += 100_000
		s.seen(client(150), roleServer, 77, calls, now+1)
		second(100, 2400)
	}
	if ports[client(150).Port()] || out() == 0 {
		t.Errorf("the connection of a caller that has no other is left out: %v, %d", ports[client(150).Port()], out())
	}
	// all are followed once one held up the server, but not each second
	s.widen(now)
	if out() != 0 {
		t.Errorf("%d are left out", out())
	}
	second(100, 2400)
	if out() != 0 {
		t.Errorf("%d are left out again at once", out())
	}
	now += int64(widenFor)
	second(100, 2400)
	second(100, 2400)
	n := out()
	s.widen(now)
	if n == 0 || out() != n {
		t.Errorf("%d were left out, after another hold-up %d", n, out())
	}
	// a port that is used again is followed
	for i := range 100 {
		s.closed(client(i), roleServer)
	}
	s.opened(client(150))
	if out() != 0 || s.leftOut != 0 || len(s.conns) != 0 || len(s.ports) != 0 {
		t.Errorf("of connections that closed there are left: %d %d %d %d", out(), s.leftOut, len(s.conns), len(s.ports))
	}
}

// TestLeftOutStale: what the programs knew of a connection when it was left out says nothing about its end, at neither
// end.
func TestLeftOutStale(t *testing.T) {
	for _, leftOut := range []bool{false, true} {
		c, rec := newChurner(0)
		addr := func(role kernelRole) kernelAddr {
			client, server := netip.MustParseAddr("10.1.0.9").As16(), netip.MustParseAddr("10.0.0.1").As16()
			if role == roleServer {
				return kernelAddr{Family: 2, Role: role, Laddr: server, Raddr: client, Lport: churnPort, Rport: 1000}
			}
			return kernelAddr{Family: 2, Role: role, Laddr: client, Raddr: server, Lport: 1000, Rport: churnPort}
		}
		r := c.b
		r.sample.put = func(uint16, bool) bool { return true }
		r.sample.tell = func(clientEnd) {}
		ends := []kernelRole{roleServer, roleClient}
		report := func(kind kernelEventType, role kernelRole) {
			r.conn(&kernelConnEvent{
				Type: kind, Role: role, Tgid: uint32(role), Addr: addr(role), Conn: uint64(role) + 1, Now: 9e9,
				Opened: 1e9, LastIn: 2e9, LastOut: 1e9, Outstanding: 1, Op: 1, Calls: 7,
			})
		}
		for _, role := range ends {
			report(evStatus, role)
		}
		if leftOut {
			r.sample.set(1000, true)
		}
		a := addr(roleServer)
		r.acknowledged(&kernelAckedEvent{Addr: a, From: 1e9, To: 9e9})
		for _, role := range ends {
			report(evClose, role)
		}
		closes := 0
		for _, e := range rec.Events {
			switch e.Kind {
			case recording.KindClose:
				closes++
				d := recording.DetailOf[recording.ConnDetail](e)
				if known := d.Waiting == 1 && d.IdleNs == 7e9 && d.Op != ""; known == leftOut || d.Calls != 7 {
					t.Errorf("left out: %v: %+v", leftOut, d)
				}
			case recording.KindAcknowledged:
				if leftOut {
					t.Error("an acknowledgement after the connection was left out")
				}
			}
		}
		if closes != 2 || len(r.sample.conns) != 0 || r.sample.leftOut != 0 {
			t.Errorf("%d ends closed; kept: %v", closes, r.sample.conns)
		}
	}
}

// leftOutMade is a client that waited for a connection that is left out.
type leftOutMade struct{ Node, Waiting string }

// TestLeftOutCulprit: what held up the server is not named where it may have been a connection that is left out.
func TestLeftOutCulprit(t *testing.T) {
	rec, made := playTape[leftOutMade](t, "left-out", nil)
	checkLeftOutCulprit(t, rec, made)
}

func checkLeftOutCulprit(t *testing.T, rec *recording.Recording, made leftOutMade) {
	t.Helper()
	var culprits []string
	for _, c := range rec.Calls {
		for _, s := range rec.SegmentsOf(c.ID) {
			if c.Conn == made.Waiting && s.State == recording.Busy {
				culprits = append(culprits, s.Culprit)
			}
		}
	}
	if !slices.Contains(culprits, notFollowed) {
		t.Errorf("the call waited for %q", culprits)
	}
	for _, e := range rec.EventsOf(recording.SourceTap, made.Node, recording.KindActivity) {
		if d := recording.DetailOf[recording.ActivityDetail](e); d.Client == "" && d.OnCPUNs > 20e6 {
			t.Errorf("the server's own work, for %v: %+v", time.Duration(e.DurationNs), d)
		}
	}
}
