//go:build linux

package tap

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// dnsSink is a recording that passes on each DNS query of a process.
type dnsSink struct {
	*recording.Recording
	pid    int
	events chan recording.Event
}

func (l dnsSink) Event(e recording.Event) {
	l.Recording.Event(e)
	if e.Kind == recording.KindDNSQuery && e.Subject == fmt.Sprintf("%s%d", recording.ProcessPrefix, l.pid) {
		l.events <- e
	}
}

// TestDNS: a query to port 53 and its late answer are recorded with the process, and other datagrams are not.
func TestDNS(t *testing.T) {
	names := fmt.Sprintf("127.%d.%d.54", 64+os.Getpid()>>8&63, os.Getpid()&255)
	server, err := net.ListenPacket("udp", names+":53")
	if err != nil {
		t.Skipf("needs root, for port 53: %v", err)
	}
	defer server.Close()
	elsewhere, err := net.ListenPacket("udp", names+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	const late = 20 * time.Millisecond
	for _, c := range []net.PacketConn{elsewhere, server} {
		go func() {
			buf := make([]byte, 512)
			for {
				n, from, err := c.ReadFrom(buf)
				if err != nil {
					return
				}
				time.Sleep(late) // a name server that is slow
				_, _ = c.WriteTo(buf[:n], from)
			}
		}()
	}
	tap, rec := openAt(t, "127.0.0.1", startServer(t), Options{})
	sink := dnsSink{rec, os.Getpid(), make(chan recording.Event, 16)}
	tap.Sink, tap.recorder.Sink = sink, sink
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tap.Run(ctx) }()
	ask := func(address string) {
		c, err := net.Dial("udp", address)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte("question")); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 512)); err != nil {
			t.Error(err)
		}
	}
	ask(elsewhere.LocalAddr().String())
	ask(server.LocalAddr().String())
	select {
	case e := <-sink.events:
		d := recording.DetailOf[recording.DNSQueryDetail](e)
		if !d.Answered || d.Queries != 1 || e.DurationNs < int64(late) || !strings.HasPrefix(d.Comm, "tap.test") {
			t.Errorf("%+v of %v", d, time.Duration(e.DurationNs))
		}
	case <-time.After(10 * time.Second):
		t.Error("the query was not recorded")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	if len(sink.events) > 0 {
		t.Errorf("another one was recorded: %+v", <-sink.events)
	}
}

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
