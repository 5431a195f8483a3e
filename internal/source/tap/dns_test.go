//go:build linux

package tap

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// TestDNSQueries: a query that is repeated, on the same socket or another, is one wait; one that is answered and sent
// anew are two.
func TestDNSQueries(t *testing.T) {
	type step struct {
		at     int64 // ms
		sock   uint64
		answer uint8
	}
	for name, tt := range map[string]struct {
		steps []step
		want  string
	}{
		"answered": {[]step{{0, 1, 0}, {30, 1, 1}}, "0+30 1 true"},
		"IPv4 and IPv6": {
			[]step{{0, 1, 0}, {0, 1, 0}, {30, 1, 1}, {31, 1, 1}},
			"0+30 2 true, 0+31 2 true",
		},
		"quick":                     {[]step{{100, 1, 0}, {100, 1, 1}}, ""},
		"asked again on the socket": {[]step{{0, 1, 0}, {5000, 1, 0}, {5010, 1, 1}}, "0+5010 2 true"},
		"asked again on another": {
			[]step{{0, 1, 0}, {5000, 2, 0}, {5010, 2, 1}},
			"0+5000 1 false, 5000+10 1 true",
		},
		"two at once on two sockets": {
			[]step{{0, 1, 0}, {1, 2, 0}, {30, 2, 1}, {40, 1, 1}},
			"1+29 1 true, 0+40 1 true",
		},
		"one behind the other": {
			[]step{{0, 1, 0}, {30, 1, 1}, {100, 1, 0}, {140, 1, 1}},
			"0+30 1 true, 100+40 1 true",
		},
		"an answer to an earlier process": {[]step{{0, 1, 1}}, ""},
	} {
		rec := recording.New()
		b := &recorder{
			Options: Options{Sink: rec}, dnsQueries: map[uint64]*dnsQuery{},
			time: func(at uint64) int64 { return int64(at) },
		}
		for _, s := range tt.steps {
			b.dns(&kernelDnsEvent{
				Type: evDNS, Answer: s.answer, Tgid: 7, Now: uint64(s.at * 1e6),
				Sock: s.sock,
			})
		}
		var got []string
		for _, e := range rec.Events {
			d := recording.DetailOf[recording.DNSQueryDetail](e)
			got = append(got, fmt.Sprintf("%d+%d %d %v", e.TimeNs/1e6, e.DurationNs/1e6, d.Queries, d.Answered))
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
}

// dnsMade is the process that asked, and how late the answers were.
type dnsMade struct {
	PID    int
	LateNs int64
}

// TestDNS: a query to port 53 and its late answer are recorded with the process, and other datagrams are not.
func TestDNS(t *testing.T) {
	rec, made := playTape[dnsMade](t, "dns", nil)
	checkDNS(t, rec, made)
}

func checkDNS(t *testing.T, rec *recording.Recording, made dnsMade) {
	t.Helper()
	process := fmt.Sprintf("%s%d", recording.ProcessPrefix, made.PID)
	events := rec.EventsOf(recording.SourceTap, process, recording.KindDNSQuery)
	if len(events) != 1 {
		t.Fatalf("%d queries were recorded: %+v", len(events), events)
	}
	d := recording.DetailOf[recording.DNSQueryDetail](events[0])
	if !d.Answered || d.Queries != 1 || events[0].DurationNs < made.LateNs || !strings.HasPrefix(d.Comm, "tap.test") {
		t.Errorf("%+v of %d ns", d, events[0].DurationNs)
	}
}

// TestNamedBeforeDialled: the first call of a connection waited for the name server before the dial, too.
func TestNamedBeforeDialled(t *testing.T) {
	const ms = uint64(1e6)
	rec := recording.New()
	r := newRecorder(Options{Slow: 5 * time.Millisecond, Nodes: []Node{{PID: 50, Address: "server"}}, Sink: rec},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
	for at, answer := range []uint8{0, 1} {
		r.dns(&kernelDnsEvent{Answer: answer, Tgid: 7, Now: uint64(100+20*at) * ms, Sock: 1})
	}
	client := clientEnd{AddrPort: netip.MustParseAddrPort("10.0.0.7:4000")}
	r.dialledBy(&kernelConnEvent{Tgid: 7, Tid: 7, Dialled: 121 * ms, Now: 123 * ms}, client)
	r.wantedBefore(&handshake{client: client}, recording.Call{
		Source: recording.SourceTap, Op: "GET", Node: "server", IntendedNs: int64(124 * ms), StartNs: int64(124 * ms),
		EndNs: int64(125 * ms),
	}, int64(123*ms), false)
	if len(rec.Calls) != 1 || rec.Calls[0].IntendedNs != int64(100*ms) {
		t.Fatalf("%+v", rec.Calls)
	}
	s := rec.SegmentsOf(rec.Calls[0].ID)[0]
	if s.State != recording.Dial || s.Culprit != "dns" || s.ToNs != int64(120*ms) {
		t.Errorf("%+v", s)
	}
}
