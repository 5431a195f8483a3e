//go:build linux

package tap

import (
	"net/netip"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// TestServedBooksTheServersView: slowpath's own call is no call of a user; what its server did meanwhile is kept, all
// of its time.
func TestServedBooksTheServersView(t *testing.T) {
	rec := recording.New()
	server := netip.MustParseAddrPort("127.0.0.1:6379")
	b := newRecorder(Options{Clock: clock.New(), Files: host.Root{}, Sink: rec, Nodes: []Node{{
		Address: server.String(), Remote: server,
		PID: 50,
	}}},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{name: "GET"} })
	e := &kernelCallEvent{
		Role: roleServer, Tid: 50, Tgid: 50, At: [4]uint64{1e9, 1.02e9, 1.021e9, 1.03e9},
		Complete: 1.001e9,
	}
	e.Addr.Role, e.Addr.Lport, e.Addr.Rport = roleServer, 6379, 4000
	for _, a := range []*[16]uint8{&e.Addr.Laddr, &e.Addr.Raddr} {
		*a = netip.MustParseAddr("::ffff:127.0.0.1").As16()
	}
	e.Clk[1].Ns[throttled], e.Clk[2].Ns[throttled], e.Clk[3].Ns[throttled] = 5e6, 5e6, 5e6
	client, _ := endsOf(&e.Addr)
	e.Addr.Observer = ownObserver
	b.call(e)
	b.call(e) // another command of the same read, answered by the same send
	e.At[3]++
	e.Flags = flagFresh
	b.call(e) // a fast one of its handshake
	if len(rec.Calls) != 0 || len(rec.Events) != 1 {
		t.Fatalf("%d calls and %d events, want one event: %+v", len(rec.Calls), len(rec.Events), rec.Events)
	}
	ev, d := rec.Events[0], recording.DetailOf[recording.ServedDetail](rec.Events[0])
	if ev.Kind != recording.KindServed || ev.TimeNs != 1e9 || ev.DurationNs != 30e6 || d.Op != "GET" ||
		d.Client != client.String() {
		t.Errorf("%+v", ev)
	}
	at, ns := int64(0), map[string]int64{}
	for _, p := range d.Parts {
		if p.FromNs != at {
			t.Errorf("a part begins at %d, the one before ended at %d", p.FromNs, at)
		}
		at = p.ToNs
		ns[p.State] += p.ToNs - p.FromNs
	}
	if at != ev.DurationNs || ns[recording.Throttled] != 5e6 || ns[recording.Out] != 1e6 || ns[recording.Exec] != 1e6 ||
		ns[recording.Busy] != 23e6 {
		t.Errorf("parts %+v", d.Parts)
	}
}
