//go:build linux

package tap

import (
	"net/netip"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// TestConcurrent: of several calls to a node that wait, the one that was sent last counts; of several connections to
// another node, the last exchange.
func TestConcurrent(t *testing.T) {
	rec := recording.New()
	a, b, x := netip.MustParseAddrPort("10.0.0.1:6379"), netip.MustParseAddrPort("10.0.0.2:6379"),
		netip.MustParseAddrPort("10.0.0.3:6379")
	client := clientEnd{AddrPort: netip.MustParseAddrPort("10.0.0.9:1000")}
	k := newRecorder(Options{
		Clock: clock.New(), Sink: rec, Slow: 5 * time.Millisecond,
		Nodes: []Node{{Address: "a", Remote: a}, {Address: "b", Remote: b}, {Address: "x", Remote: x}},
	},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{name: "GET"} })
	k.addClient(client, process{pid: 7, comm: "shop"})
	const ms = int64(1e6)
	take := func(at int64, ends ...kernelConnSnapshot) {
		v := &snapshot{at: at, exchanges: map[processNode]exchange{}}
		for _, g := range ends {
			k.addExchange(v, &g)
		}
		k.snapshots.add(v)
	}
	end := func(server netip.AddrPort, tgid uint32, from, to int64, outstanding uint32) kernelConnSnapshot {
		return kernelConnSnapshot{
			From: uint64(from), To: uint64(to), Tgid: tgid, Outstanding: outstanding,
			Addr: kernelAddr{
				Role: roleClient, Lport: 1000, Rport: server.Port(), Laddr: client.Addr().As16(),
				Raddr: server.Addr().As16(),
			},
		}
	}
	take(120*ms, end(a, 7, 10*ms, 11*ms, 0), end(a, 7, 100*ms, 101*ms, 0), end(b, 7, 100*ms, 100*ms, 1),
		end(a, 8, 110*ms, 111*ms, 0), end(x, 7, 90*ms, 91*ms, 0))
	for _, from := range []int64{60, 100, 80, 116} { // the last was not slow yet
		k.addSlowCall(recording.Call{Node: "x", Op: "GET", Client: "shop[7]", StartNs: from * ms, EndNs: 150 * ms},
			client)
	}
	k.addSlowCall(recording.Call{Node: "x", Op: "GET", StartNs: 110 * ms, EndNs: 119 * ms}, client) // it had ended
	k.addSlowCall(recording.Call{Node: "x", Op: "GET", StartNs: 110 * ms, EndNs: 150 * ms},
		clientEnd{AddrPort: netip.MustParseAddrPort("10.0.0.9:2000")})
	k.emitConcurrent(120*ms + keepSnapshots)
	if len(rec.Events) != 0 {
		t.Errorf("booked too early: %+v", rec.Events)
	}
	k.emitConcurrent(121*ms + keepSnapshots)
	want := recording.Detail(recording.OtherNodesDetail{
		Op: "GET", Process: "shop[7]",
		Others: []recording.OtherNodeCall{{Node: "a", TookNs: ms}, {Node: "b", Waiting: true}},
	})
	if len(rec.Events) != 1 || rec.Events[0].TimeNs != 100*ms || rec.Events[0].DurationNs != 20*ms ||
		rec.Events[0].Subject != "x" || rec.Events[0].Detail != want {
		t.Errorf("%+v, want %s", rec.Events, want)
	}
	for now, wanted := range map[int64]bool{150*ms + snapshotAfter - 1: true, 150*ms + snapshotAfter: false} {
		if k.snapshots.wanted(now) != wanted {
			t.Errorf("snapshots are wanted at %d: %t", now, !wanted)
		}
	}
}

// snapshotsMade is how a client asked three servers, and which of them was stopped now and then.
type snapshotsMade struct {
	Together bool // all at once, else one after the other
	Slow     string
}

// snapshotTapes: at 127.0.0.1 the servers' ends parse for the clients'.
var snapshotTapes = map[string]struct {
	together bool
	host     byte
}{
	"snapshots-together": {true, 1}, "snapshots-in-turn": {false, 1},
	"snapshots-together-parsed": {true, 2}, "snapshots-in-turn-parsed": {false, 2},
}

// TestSnapshots: calls that wait for a server which is stopped again and again are in snapshots, with what else their
// process had asked.
func TestSnapshots(t *testing.T) {
	for name := range snapshotTapes {
		t.Run(name, func(t *testing.T) {
			rec, made := playTape[snapshotsMade](t, name, nil)
			checkSnapshots(t, rec, made)
		})
	}
}

// checkSnapshots: exchanges with the other two servers overlap the send of a slow call where all are asked at once, and
// never where the reply of one comes before the next is asked.
func checkSnapshots(t *testing.T, rec *recording.Recording, made snapshotsMade) {
	t.Helper()
	overlapping, most := 0, 0
	for _, e := range rec.EventsOf(recording.SourceTap, made.Slow, recording.KindOtherNodes) {
		d := recording.DetailOf[recording.OtherNodesDetail](e)
		if d.Op != "PING" || d.Client == "" || d.Process == "" || e.DurationNs < int64(DefaultSlow)/2 {
			t.Errorf("%+v %+v", e, d)
		}
		with := 0
		for _, o := range d.Others {
			if !o.Waiting && o.SentAfterNs < e.DurationNs && o.SentAfterNs+o.TookNs > 0 {
				with++
			}
		}
		overlapping, most = overlapping+with, max(most, with)
	}
	if made.Together && most != 2 || !made.Together && overlapping != 0 {
		t.Errorf("%d exchanges overlap the send of the slow call, up to %d in one snapshot", overlapping, most)
	}
}
