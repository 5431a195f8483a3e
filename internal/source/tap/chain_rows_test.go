//go:build linux

package tap

import (
	"net/netip"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// TestChainRows: a connection reports itself each second. What it says of chains is written where there are more of
// them than before.
func TestChainRows(t *testing.T) {
	rec := recording.New()
	o := Options{Sink: rec, Slow: DefaultSlow, Nodes: []Node{
		{Address: "server", Remote: netip.MustParseAddrPort("10.0.0.1:6379")},
	}}
	r := newRecorder(o, func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{name: "GET"} })
	e := kernelConnEvent{Type: evStatus, Role: roleClient, Conn: 7, Tid: 9, Tgid: 9, Opened: 1, Addr: kernelAddr{
		Family: 2, Role: roleClient, Laddr: [16]uint8{10: 0xff, 11: 0xff, 12: 10, 15: 2},
		Raddr: [16]uint8{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Lport: 40_000, Rport: 6379,
	}}
	for second, chains := range []uint64{0, 0, 2, 2, 2, 3, 3} {
		e.Now = uint64(second+1) * 1e9
		e.Chains.Count, e.Chains.Calls = chains, 10*chains
		r.conn(&e)
	}
	for _, name := range []string{"chains", "chain_calls", "chain_of.GET"} {
		s := rec.Series(recording.SourceTap, recording.ConnPrefix+"10.0.0.2:40000", name)
		if len(s) != 2 || s[0].TimeNs != 3e9 || s[1].TimeNs != 6e9 ||
			s[1].Value != 3 && !strings.HasSuffix(name, "calls") {
			t.Errorf("%s: %v", name, s)
		}
	}
}

// TestUseEndsWithTheLastReply: at the end of a watch all connections are reported. One that was not used for a while
// was used up to its last reply, and one with a call under way up to now.
func TestUseEndsWithTheLastReply(t *testing.T) {
	for outstanding, want := range map[uint32]int64{0: 2e9, 1: 8e9} {
		rec := recording.New()
		o := Options{Sink: rec, Slow: DefaultSlow, Nodes: []Node{
			{Address: "server", Remote: netip.MustParseAddrPort("10.0.0.1:6379")},
		}}
		r := newRecorder(o, func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
		r.conn(&kernelConnEvent{
			Type: evStatus, Role: roleClient, Conn: 7, Tid: 9, Tgid: 9, Opened: 1, Addr: kernelAddr{
				Family: 2, Role: roleClient, Laddr: [16]uint8{10: 0xff, 11: 0xff, 12: 10, 15: 2},
				Raddr: [16]uint8{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Lport: 40_000, Rport: 6379,
			},
			Now: 8e9, LastIn: 2e9, Calls: 5, Outstanding: outstanding,
		})
		if u, ok := rec.LastConnUse("10.0.0.2:40000"); !ok || u.TimeNs != want || u.Calls != 5 {
			t.Errorf("%d calls under way: %+v", outstanding, u)
		}
	}
}
