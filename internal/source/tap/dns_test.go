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
		thread uint32
	}
	for name, tt := range map[string]struct {
		steps []step
		want  string
	}{
		"answered": {[]step{{0, 1, 0, 7}, {30, 1, 1, 7}}, "0+30 1 true"},
		"IPv4 and IPv6": {
			[]step{{0, 1, 0, 7}, {0, 1, 0, 7}, {30, 1, 1, 7}, {31, 1, 1, 7}},
			"0+30 2 true, 0+31 2 true",
		},
		"quick":                     {[]step{{100, 1, 0, 7}, {100, 1, 1, 7}}, ""},
		"asked again on the socket": {[]step{{0, 1, 0, 7}, {5000, 1, 0, 7}, {5010, 1, 1, 7}}, "0+5010 2 true"},
		"asked again on another": {
			[]step{{0, 1, 0, 7}, {5000, 2, 0, 7}, {5010, 2, 1, 7}},
			"0+5000 1 false, 5000+10 1 true",
		},
		"two at once on two sockets": {
			[]step{{0, 1, 0, 7}, {1, 2, 0, 7}, {30, 2, 1, 7}, {40, 1, 1, 7}},
			"1+29 1 true, 0+40 1 true",
		},
		"one behind the other": {
			[]step{{0, 1, 0, 7}, {30, 1, 1, 7}, {100, 1, 0, 7}, {140, 1, 1, 7}},
			"0+30 1 true, 100+40 1 true",
		},
		"an answer to an earlier process": {[]step{{0, 1, 1, 7}}, ""},
		"asked by two threads, and each asks again": {
			[]step{
				{0, 1, 0, 7}, {600, 2, 0, 8}, {1000, 3, 0, 7}, {1000, 3, 1, 7}, {1600, 4, 0, 8}, {1610, 4, 1, 8},
			},
			"0+1000 1 false, 1000+0 1 true, 600+1000 1 false, 1600+10 1 true",
		},
		"asked by two threads at the same times, of which each reads its answers": {
			[]step{{0, 1, 0, 7}, {1005, 2, 0, 8}, {1006, 3, 0, 7}, {1006, 3, 1, 7}},
			"0+1006 1 false, 1006+0 1 true",
		},
		"asked again by any thread, when its time is up": {
			[]step{
				{0, 1, 0, 7},
				{0, 1, 1, 8},
				{1, 2, 0, 7},
				{300, 3, 0, 7},
				{3500, 5, 0, 7},
				{5003, 4, 0, 8},
				{5005, 4, 1, 9},
			},
			"1+5002 1 false, 5003+2 1 true",
		},
		"something else is asked after it was given up": {
			[]step{{0, 1, 0, 7}, {3500, 2, 0, 7}, {3500, 2, 1, 7}}, "0+500 1 false, 3500+0 1 true",
		},
		"one of two has no answer": {
			[]step{{0, 1, 0, 7}, {0, 1, 0, 7}, {0, 1, 1, 7}, {5000, 1, 0, 7}, {5000, 1, 1, 7}},
			"0+5000 2 false, 5000+0 1 true",
		},
		"asked again on the socket, and something else long after that": {
			[]step{
				{0, 1, 0, 7},
				{0, 1, 0, 7},
				{1000, 1, 0, 7},
				{1000, 1, 0, 7},
				{1002, 1, 1, 7},
				{1002, 1, 1, 7},
				{3000, 1, 0, 7},
				{3000, 1, 1, 7},
			},
			"0+1002 4 true, 0+1002 4 true",
		},
		"two more, long after both had answers": {
			[]step{{0, 1, 0, 7}, {0, 1, 0, 7}, {0, 1, 1, 7}, {0, 1, 1, 7}, {5000, 1, 0, 7}, {5010, 1, 1, 7}},
			"5000+10 1 true",
		},
	} {
		rec := recording.New()
		b := &recorder{
			Options: Options{Sink: rec}, dnsQueries: map[dnsSocket]*dnsQuery{}, dnsServers: map[netip.Addr]*dnsServer{},
			anyThreadReads: map[int]bool{},
			time:           func(at uint64) int64 { return int64(at) },
		}
		for _, s := range tt.steps {
			b.dns(&kernelDnsEvent{
				Type: evDNS, Answer: s.answer, Tgid: 7, Tid: s.thread, Now: uint64(s.at * 1e6),
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

// dnsMade is the process that asked, whom, and how late the answers were.
type dnsMade struct {
	PID    int
	LateNs int64
	Server string
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
	if !d.Answered || d.Queries != 1 || d.Answers != 1 || d.TID == 0 || d.Server != made.Server ||
		events[0].DurationNs < made.LateNs || !strings.HasPrefix(d.Comm, "tap.test") {
		t.Errorf("%+v of %d ns", d, events[0].DurationNs)
	}
}

// TestDNSSocketsInTheSamePlace: a new socket in the memory of a closed one repeats its query, and is not that socket.
func TestDNSSocketsInTheSamePlace(t *testing.T) {
	rec := recording.New()
	r := newRecorder(Options{Sink: rec}, func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp {
		return nodeOp{}
	})
	for _, e := range []kernelDnsEvent{
		{Now: 0, Port: 100}, {Now: 5e9, Port: 101}, {Now: 5e9, Port: 101, Answer: 1}, {Now: 10e9, Port: 102},
	} {
		e.Tgid, e.Tid, e.Sock = 7, 7, 1
		r.dns(&e)
	}
	if len(rec.Events) != 2 || rec.Events[0].DurationNs != 5e9 || rec.Events[1].TimeNs != 5e9 {
		t.Errorf("%+v", rec.Events)
	}
}

// TestDNSServersThatAnswer: each query names its server, and how often that had answered by then. After lost queries an
// answer is recorded however soon it came.
func TestDNSServersThatAnswer(t *testing.T) {
	rec := recording.New()
	r := newRecorder(Options{Sink: rec}, func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp {
		return nodeOp{}
	})
	ask := func(ms, sock uint64, server string, answer uint8) {
		r.dns(&kernelDnsEvent{
			Answer: answer, Tgid: 7, Tid: 7, Now: ms * 1e6, Sock: sock, Server: netip.MustParseAddr(server).As16(),
		})
	}
	for at := uint64(0); at < 4000; at += 2000 {
		ask(at, 1, "10.0.0.1", 0)
		ask(at+1000, 2, "10.0.0.2", 0)
		ask(at+1000, 2, "10.0.0.2", 1)
	}
	for range 2 {
		ask(5000, 3, "10.0.0.1", 0)
		ask(5000, 3, "10.0.0.1", 1)
	}
	var got []string
	for _, e := range rec.Events {
		d := recording.DetailOf[recording.DNSQueryDetail](e)
		got = append(got, fmt.Sprintf("%s %v %d", d.Server, d.Answered, d.ServerAnswers))
	}
	const want = "10.0.0.1 false 0, 10.0.0.2 true 1, 10.0.0.1 false 0, 10.0.0.2 true 2, " +
		"10.0.0.1 true 1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// TestNamedBeforeDialled: the first call of a connection waited for the name server before the dial, too, and before
// that for one that did not answer.
func TestNamedBeforeDialled(t *testing.T) {
	const ms = uint64(1e6)
	rec := recording.New()
	r := newRecorder(Options{Slow: 5 * time.Millisecond, Nodes: []Node{{PID: 50, Address: "server"}}, Sink: rec},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
	r.dns(&kernelDnsEvent{Tgid: 7, Now: 100 * ms, Sock: 1})
	r.dns(&kernelDnsEvent{Tgid: 7, Now: 1100 * ms, Sock: 2})
	r.dns(&kernelDnsEvent{Answer: 1, Tgid: 7, Now: 1120 * ms, Sock: 2})
	client := clientEnd{AddrPort: netip.MustParseAddrPort("10.0.0.7:4000")}
	r.dialledBy(&kernelConnEvent{Tgid: 7, Tid: 7, Dialled: 1121 * ms, Now: 1123 * ms}, client)
	r.wantedBefore(&handshake{client: client}, recording.Call{
		Source: recording.SourceTap, Op: "GET", Node: "server", IntendedNs: int64(1124 * ms), StartNs: int64(1124 * ms),
		EndNs: int64(1125 * ms),
	}, int64(1123*ms), false)
	if len(rec.Calls) != 1 || rec.Calls[0].IntendedNs != int64(100*ms) {
		t.Fatalf("%+v", rec.Calls)
	}
	s := rec.SegmentsOf(rec.Calls[0].ID)[0]
	if s.State != recording.Dial || s.Culprit != "dns" || s.ToNs != int64(1120*ms) {
		t.Errorf("%+v", s)
	}
}
