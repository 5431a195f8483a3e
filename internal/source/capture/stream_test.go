package capture_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

const us = time.Microsecond

// TestMidConnection: on a connection that was there before, the first replies may answer requests that are not in the
// capture. After four exchanges without contradiction the order is known, and the calls before count as well.
func TestMidConnection(t *testing.T) {
	w := newWire(t)
	f := w.flow(40001)
	f.send(server, "lue\r\n$5\r\nvalue\r\n") // the rest of a reply, and a whole one
	w.wait(ms)
	f.calls(9, 200*us)
	f.call(cmd("SET", "key", "value"), "+OK\r\n", 20*ms)
	rec := w.read()
	if n, s := total(rec), slow(rec); n != 10 || len(s) != 1 || s[0].Op != "SET" {
		t.Errorf("%d calls, slow: %v", n, s)
	}
	few := newWire(t)
	few.flow(40001).calls(3, 200*us)
	known := few.dial(40002, 200*us, 10*us)
	known.calls(5, 200*us)
	rec = few.read()
	if n, lost := total(rec), unseen(rec, unpaired); n != 5 || lost != 3 {
		t.Errorf("%d calls, %v not paired; want those of the other connection alone", n, lost)
	}
	if v, _ := rec.Series(recording.SourceTap, recording.SubjectSelf, "tap.unaligned").Last(); v != 3 {
		t.Errorf("%v are counted as not aligned", v)
	}
}

// TestPooledConnections: a connection of a pool is used now and then. After a silence in the capture no reply is due,
// so that the first exchange is one; soon after the begin of the capture that is not known.
func TestPooledConnections(t *testing.T) {
	w := newWire(t)
	w.dial(40001, 200*us, 10*us).calls(5, 200*us)
	w.flow(40002).calls(1, 200*us)
	w.wait(1500 * ms)
	for port := range uint16(10) {
		w.flow(40010+port).calls(1, 200*us)
	}
	rec := w.read()
	if n, lost := total(rec), unseen(rec, unpaired); n != 15 || lost != 1 {
		t.Errorf("%d calls, %v not paired", n, lost)
	}
}

// TestReplyAfterASilence: a client that shares its connection may have waited for a server that hangs, from before the
// capture on. Where more replies come than requests, none is paired.
func TestReplyAfterASilence(t *testing.T) {
	w := newWire(t)
	w.dial(40001, 200*us, 10*us).calls(5, 200*us)
	w.wait(1500 * ms)
	f := w.flow(40002)
	f.send(client, cmd("INCR", "n"))
	w.wait(300 * ms)
	f.send(server, ":1\r\n") // of a request before the capture
	w.wait(us)
	f.send(server, ":2\r\n")
	w.wait(10 * ms)
	f.calls(2, 200*us)
	if rec := w.read(); total(rec) != 5 || len(slow(rec)) != 0 {
		t.Errorf("%d calls, slow: %v", total(rec), slow(rec))
	}
}

// TestInlineCommands: also behind empty lines, which a server passes over.
func TestInlineCommands(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	for _, line := range []string{"\r\nPING\r\n", "PING\r\n", "\r\n\r\nPING\r\n", "\r\nPING\r\nPING\r\n"} {
		f.call(line, strings.Repeat("+PONG\r\n", strings.Count(line, "PING")), 200*us)
	}
	if n := total(w.read()); n != 5 {
		t.Errorf("%d calls", n)
	}
}

// TestRESP3: replies of each type of RESP3, with what is said of them before and pushes between them, are replies, also
// on a connection that was there before the capture.
func TestRESP3(t *testing.T) {
	for _, reply := range []string{
		"|1\r\n+popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n$5\r\nvalue\r\n",
		"|0\r\n+OK\r\n",
		"*2\r\n|1\r\n+ttl\r\n:3600\r\n:1\r\n:2\r\n",
		"|1\r\n+a\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n|1\r\n+b\r\n_\r\n#t\r\n",
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n$5\r\nvalue\r\n",
		"|1\r\n+a\r\n:1\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n$5\r\nvalue\r\n",
		"_\r\n", "$-1\r\n", "*-1\r\n", "#f\r\n", ",1.5\r\n", ",-inf\r\n", ",nan\r\n", "(-34928903284092385093248\r\n",
		"=15\r\ntxt:Some string\r\n", "!21\r\nSYNTAX invalid syntax\r\n", "-ERR no\r\n", "~2\r\n+a\r\n:1\r\n",
		"%1\r\n+a\r\n_\r\n", "%0\r\n", "~0\r\n",
	} {
		for name, piece := range map[string]int{"whole": len(reply), "in pieces": 3} {
			w := newWire(t)
			f := w.flow(40001)
			for range 6 {
				f.send(client, cmd("GET", "key"))
				w.wait(200 * us)
				for at := 0; at < len(reply); at += piece {
					f.send(server, reply[at:min(at+piece, len(reply))])
					w.wait(10 * us)
				}
				f.ack(client)
				w.wait(10 * ms)
			}
			if n := total(w.read()); n != 6 {
				t.Errorf("%q, %s: %d calls", reply, name, n)
			}
		}
	}
}

// TestSubscribedUnderRESP3: there a client goes on to call on a connection that is subscribed, whose messages are
// pushes. Under RESP2 all that follows is messages.
func TestSubscribedUnderRESP3(t *testing.T) {
	for hello, calls := range map[string]int64{
		"%1\r\n$5\r\nproto\r\n:3\r\n": 12, "*2\r\n$5\r\nproto\r\n:2\r\n": 6,
	} {
		w := newWire(t)
		f := w.dial(40001, 200*us, 10*us)
		f.call(cmd("HELLO", "3"), hello, 200*us)
		f.calls(5, 200*us)
		mark := ">"
		if hello[0] == '*' {
			mark = "*"
		}
		f.call(cmd("SUBSCRIBE", "news"), mark+"3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", 200*us)
		w.wait(time.Second)
		f.send(server, mark+"3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n")
		f.calls(6, 200*us)
		if n := total(w.read()); n != calls {
			t.Errorf("after %q: %d calls, want %d", hello, n, calls)
		}
	}
}

// TestShiftedOrder: a client that always has two requests under way, seen from the middle. A reply that comes sooner
// than a round trip answers an earlier request: none of its calls is paired wrong.
func TestShiftedOrder(t *testing.T) {
	w := newWire(t)
	w.dial(40002, 2*ms, 10*us).calls(10, 2*ms)
	f := w.flow(40001)
	for range 40 { // a request goes out 100 µs before the reply to the one before it
		before := f.acked[server]
		f.send(client, cmd("INCR", "n"))
		f.acked[server] = before // the reply was sent before this request came
		w.wait(100 * us)
		f.send(server, ":1\r\n")
		f.acked[server] = f.seq[client]
		w.wait(1900 * us)
		f.ack(server)
	}
	rec := w.read()
	for _, h := range rec.HistogramSums(recording.SourceTap) {
		if strings.HasSuffix(h.Op, "INCR") {
			t.Errorf("%d calls of %s are paired, of %d ns", h.Sum.TotalCount(), h.Op, h.Sum.Max())
		}
	}
	if lost := unseen(rec, unpaired); lost < 30 {
		t.Errorf("%v calls are said to be not paired", lost)
	}
}

// TestPipeline: replies go to requests in their order, also where several are in one segment and one in several.
func TestPipeline(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	f.send(client, cmd("SET", "a", strings.Repeat("x", 3000))+cmd("GET", "a")+cmd("PING"))
	w.wait(7 * ms)
	f.send(server, "+OK\r\n$3000\r\n"+strings.Repeat("x", 1000))
	w.wait(2 * ms)
	f.send(server, strings.Repeat("x", 2000)+"\r\n+PO")
	w.wait(ms)
	f.send(server, "NG\r\n>2\r\n+invalidate\r\n*0\r\n")
	w.wait(ms)
	f.calls(1, 6*ms)
	var got []string
	for _, c := range slow(w.read()) {
		got = append(got, c.Op+" "+time.Duration(c.EndNs-c.StartNs).String())
	}
	if want := "SET 7ms, GET 9ms, PING 10ms, GET 6ms"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestCutPackets: of each packet the capture has the first 100 bytes.
func TestCutPackets(t *testing.T) {
	w := newWire(t)
	w.snap = 100
	f := w.dial(40001, 200*us, 10*us)
	big := strings.Repeat("x", 20000)
	for range 5 {
		f.call(cmd("SET", "key", big), "+OK\r\n", 300*us)
		f.call(cmd("GET", "key"), "$20000\r\n"+big+"\r\n", 6*ms)
		w.wait(10 * ms)
	}
	rec := w.read()
	if n, s := total(rec), slow(rec); n != 10 || len(s) != 5 || s[0].ReplyBytes != 20010 {
		t.Errorf("%d calls, slow: %v", n, s)
	}
	// A list of many elements has headers in what is cut: the order is lost, and found again.
	f.call(cmd("LRANGE", "list", "0", "-1"), "*100\r\n"+strings.Repeat("$10\r\n0123456789\r\n", 100), 300*us)
	w.wait(10 * ms)
	f.calls(6, 7*ms)
	rec = w.read()
	if n, s, lost := total(rec), slow(rec), unseen(rec, unpaired); n != 16 || len(s) != 11 || lost != 1 {
		t.Errorf("after a reply that was cut: %d calls, %d slow, %v not paired", n, len(s), lost)
	}
}

// TestLossInTheCapture: a packet that the capture does not have, though its receiver acknowledged it.
func TestLossInTheCapture(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	f.calls(5, 200*us)
	f.send(client, cmd("GET", "key"))
	w.wait(200 * us)
	f.lost = true
	f.send(server, "$5\r\nvalue\r\n")
	f.lost = false
	w.wait(5 * us)
	f.ack(client)
	w.wait(10 * ms)
	f.calls(6, 6*ms)
	rec := w.read()
	n, s, lost := total(rec), slow(rec), unseen(rec, unpaired)
	if n != 11 || len(s) != 6 || lost != 1 {
		t.Errorf("%d calls, %d slow, %v not paired; want 11, 6, 1", n, len(s), lost)
	}
	for _, c := range s {
		if ns := c.EndNs - c.StartNs; ns != int64(6*ms) {
			t.Errorf("a call of %d ns: it has the reply of another", ns)
		}
	}
	if r := rec.EventsOf(recording.SourceTap, "10.0.0.9:6379", recording.KindRetransmit); len(r) > 0 {
		t.Errorf("retransmissions: %v", r)
	}
}

// TestReordered: segments that overtake each other are neither lost nor retransmitted.
func TestReordered(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	f.calls(3, 200*us)
	f.send(client, cmd("GET", "key"))
	w.wait(8 * ms)
	first, second := "$12\r\nhello ", "world!\r\n"
	f.seq[server] += uint32(len(first))
	f.put(server, second, nil)
	f.seq[server] -= uint32(len(first))
	w.wait(20 * us)
	f.put(server, first, nil)
	f.sent(server, len(first)+len(second))
	w.wait(5 * us)
	f.calls(3, 200*us)
	rec := w.read()
	if n, s := total(rec), slow(rec); n != 7 || len(s) != 1 || s[0].ReplyBytes != 19 {
		t.Errorf("%d calls, slow: %v", n, s)
	}
	if r := rec.EventsOf(recording.SourceTap, "10.0.0.9:6379", recording.KindRetransmit); len(r) > 0 {
		t.Errorf("retransmissions: %v", r)
	}
}

// TestRetransmission: the request is sent again after the timer: the call waited for that.
func TestRetransmission(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	f.calls(5, 200*us)
	get := cmd("GET", "key")
	f.put(client, get, nil)
	w.wait(204 * ms)
	f.send(client, get)
	w.wait(200 * us)
	f.send(server, "$5\r\nvalue\r\n")
	rec := w.read()
	s := slow(rec)
	if len(s) != 1 || s[0].EndNs-s[0].StartNs != int64(204*ms+200*us) {
		t.Fatalf("slow: %v", s)
	}
	var again int64
	for _, p := range rec.SegmentsOf(s[0].ID) {
		if p.State == recording.Retransmit {
			again += p.ToNs - p.FromNs
		}
	}
	if again != int64(204*ms) {
		t.Errorf("%d ns of retransmission in %v", again, rec.SegmentsOf(s[0].ID))
	}
	events := rec.EventsOf(recording.SourceTap, "10.0.0.9:6379", recording.KindRetransmit)
	if len(events) != 1 || events[0].DurationNs != int64(204*ms) {
		t.Fatalf("retransmissions: %v", events)
	}
	d := recording.DetailOf[recording.RetransmitDetail](events[0])
	if d.From != recording.Client || d.Why != recording.RetransmitTimeout || d.State != "established" {
		t.Errorf("%+v", d)
	}
}

// TestDuplicates: "any" has packets of a bridge twice. They are no retransmissions, and no calls of their own.
func TestDuplicates(t *testing.T) {
	w := newWire(t)
	example(w)
	var twice []record
	for _, r := range w.all {
		again := r
		again.at = r.at.Add(3 * us)
		twice = append(twice, r, again)
	}
	w.all = twice
	rec := w.read()
	checkExample(t, rec, "10.0.0.9:6379")
	if r := rec.EventsOf(recording.SourceTap, "10.0.0.9:6379", recording.KindRetransmit); len(r) > 0 {
		t.Errorf("retransmissions: %v", r)
	}
}

// TestVantage: whose time it is depends on where the capture was made.
func TestVantage(t *testing.T) {
	for _, c := range []struct {
		name               string
		client             net.IP
		toServer, toClient time.Duration
		side               string
		actor              string
	}{
		{"client's side", nil, 2 * ms, 20 * us, recording.Client, recording.Nobody},
		{"server's side", nil, 20 * us, 2 * ms, recording.Server, recording.Server},
		{"between", nil, 2 * ms, 2 * ms, recording.Client, recording.Nobody},
		{"near", nil, 20 * us, 20 * us, recording.Client, recording.Nobody},
		{"same host", net.IP{10, 0, 0, 9}, 20 * us, 20 * us, recording.Client, recording.Server},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.client = c.client
			f := w.dial(40001, c.toServer, c.toClient)
			for range 10 {
				f.call(cmd("GET", "key"), "$5\r\nvalue\r\n", c.toServer+10*us)
				w.wait(c.toClient)
				f.ack(client)
				w.wait(10 * ms)
			}
			f.call(cmd("GET", "key"), "$5\r\nvalue\r\n", 30*ms)
			rec := w.read()
			s := slow(rec)
			if len(s) != 1 || s[0].Side != c.side {
				t.Fatalf("slow: %v, want side %s", s, c.side)
			}
			longest := recording.Segment{}
			for _, p := range rec.SegmentsOf(s[0].ID) {
				if p.ToNs-p.FromNs > longest.ToNs-longest.FromNs {
					longest = p
				}
			}
			if longest.Actor != c.actor || longest.State != recording.Unexplained {
				t.Errorf("the longest part is %s %s, want that of %s", longest.Actor, longest.State, c.actor)
			}
		})
	}
}

// TestConnections: who opened and closed what, after how long without a call.
func TestConnections(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 3*ms, 10*us)
	f.call(cmd("HELLO", "3", "AUTH", "u", "p"), "%0\r\n", 3*ms)
	f.call(cmd("CLIENT", "SETINFO", "LIB-NAME", "go-redis"), "+OK\r\n", 3*ms)
	f.call(cmd("GET", "key"), "$5\r\nvalue\r\n", 3*ms)
	w.wait(5 * us)
	f.ack(client)
	w.wait(300 * time.Second)
	f.fin(server)
	w.wait(ms)
	f.fin(client)
	g := w.dial(40002, 3*ms, 10*us)
	g.send(client, cmd("GET", "key"))
	w.wait(50 * ms)
	g.put(client, "", func(t *layers.TCP) { t.RST = true })
	h := w.flow(40003)
	h.put(client, "", func(t *layers.TCP) { t.SYN, t.ACK = true, false })
	w.wait(3 * ms)
	h.acked[server]++
	h.put(server, "", func(t *layers.TCP) { t.RST = true })
	rec := w.read()
	const node = "10.0.0.9:6379"
	opens := rec.EventsOf(recording.SourceTap, node, recording.KindOpen)
	closes := rec.EventsOf(recording.SourceTap, node, recording.KindClose)
	if len(opens) != 2 || len(closes) != 3 {
		t.Fatalf("opened %v, closed %v", opens, closes)
	}
	d := recording.DetailOf[recording.ConnDetail](closes[0])
	if d.By != recording.Server || d.Reason != "" || d.IdleNs != int64(300*time.Second+5*us) || d.Calls != 3 ||
		d.DialNs != int64(3*ms) || d.AgeNs != int64(300*time.Second+9*ms+5*us) {
		t.Errorf("the first: %+v", d)
	}
	d = recording.DetailOf[recording.ConnDetail](closes[1])
	if d.By != recording.Client || d.Reason != recording.CloseReset || d.Waiting != 1 || d.Op != "GET" {
		t.Errorf("the second: %+v", d)
	}
	d = recording.DetailOf[recording.ConnDetail](closes[2])
	if d.Reason != recording.CloseRefused || d.AgeNs != 0 || d.DialNs != int64(3*ms) {
		t.Errorf("the third: %+v", d)
	}
	shakes := rec.EventsOf(recording.SourceTap, node, recording.KindHandshake)
	if len(shakes) != 1 {
		t.Fatalf("handshakes: %v", shakes)
	}
	s := recording.DetailOf[recording.HandshakeDetail](shakes[0])
	if strings.Join(s.Ops, ",") != "HELLO,CLIENT SETINFO" || s.Library != "go-redis" || s.Op != "GET" ||
		s.RoundTrips != 2 || shakes[0].DurationNs != int64(12*ms+10*us) {
		t.Errorf("%+v, %d ns", s, shakes[0].DurationNs)
	}
}

// TestClosedWindow: a client that does not read its reply. The capture was made at the server's side.
func TestClosedWindow(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 20*us, 2*ms)
	for range 5 {
		f.call(cmd("GET", "key"), "$5\r\nvalue\r\n", 30*us)
		w.wait(2 * ms)
		f.ack(client)
		w.wait(10 * ms)
	}
	f.send(client, cmd("GET", "big"))
	w.wait(100 * us)
	f.send(server, "$200000\r\n"+strings.Repeat("x", 100000))
	w.wait(2 * ms)
	f.window[client] = 0
	f.ack(client)
	w.wait(500 * ms)
	f.window[client] = 500
	f.ack(client)
	w.wait(20 * us)
	f.send(server, strings.Repeat("x", 100000)+"\r\n")
	w.wait(2 * ms)
	f.ack(client)
	acks := w.read().EventsOf(recording.SourceTap, "10.0.0.9:6379", recording.KindAcknowledged)
	if len(acks) != 1 || !recording.DetailOf[recording.AckDetail](acks[0]).WindowClosed {
		t.Errorf("acknowledgements: %v", acks)
	}
}

// TestWaitIsSlow: WAIT waits for a result, not for work to come.
func TestWaitIsSlow(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	f.call(cmd("WAIT", "1", "1000"), ":1\r\n", ms/5)
	f.call(cmd("WAIT", "1", "1000"), ":0\r\n", time.Second)
	rec := w.read()
	s := slow(rec)
	if len(s) != 1 || s[0].Op != "WAIT" {
		t.Fatalf("slow: %v, want one WAIT", s)
	}
	var ns int64
	for _, g := range rec.SegmentsOf(s[0].ID) {
		if g.Actor == recording.Server && g.State == recording.AckWait {
			ns += g.ToNs - g.FromNs
		}
	}
	if 2*ns < s[0].EndNs-s[0].StartNs {
		t.Errorf("%d ns in ack-wait: %+v", ns, rec.SegmentsOf(s[0].ID))
	}
}

// TestNoCalls: what waits by design, and what is pushed, is no call.
func TestNoCalls(t *testing.T) {
	w := newWire(t)
	f := w.dial(40001, 200*us, 10*us)
	f.call(cmd("BLPOP", "queue", "0"), "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n", time.Second)
	f.call(cmd("XREAD", "BLOCK", "0", "STREAMS", "s", "$"), "*-1\r\n", time.Second)
	f.call(cmd("XREAD", "STREAMS", "s", "0"), "*-1\r\n", 6*ms)
	f.send(client, cmd("CLIENT", "REPLY", "SKIP")+cmd("SET", "a", "b"))
	w.wait(ms)
	f.call(cmd("GET", "key"), "-WRONGTYPE no\r\n", 7*ms)
	f.call(cmd("SUBSCRIBE", "news"), "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", ms)
	w.wait(time.Second)
	f.send(server, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n")
	rec := w.read()
	s := slow(rec)
	if len(s) != 2 || s[0].Op != "XREAD" || s[1].Op != "GET" || s[1].Error != "error reply" || total(rec) != 2 {
		t.Errorf("slow: %v, %d in all", s, total(rec))
	}
	const node = "10.0.0.9:6379"
	if n := len(rec.EventsOf(recording.SourceTap, node, recording.KindBlockingCommand)); n != 2 {
		t.Errorf("%d blocking commands, want 2", n)
	}
	if v, ok := rec.Series(recording.SourceTap, node, "error_replies.client.GET.WRONGTYPE").Last(); !ok || v != 1 {
		t.Errorf("error replies: %v, %v", v, ok)
	}
}

// TestReplication: a primary sends its replica what clients wrote, and the replica acknowledges it once per second.
// Nothing of it is a request with a reply, whichever end is taken for the client.
func TestReplication(t *testing.T) {
	for name, known := range map[string]bool{"of a server with clients": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			if known {
				w.dial(40001, 200*us, 10*us).calls(5, 200*us)
			}
			f := w.flow(40002)
			for range 20 {
				f.send(server, cmd("SET", "key", "value"))
				w.wait(300 * us)
				f.ack(client)
				w.wait(time.Second)
				f.send(client, cmd("REPLCONF", "ACK", "1234"))
				w.wait(300 * us)
				f.ack(server)
			}
			if !known {
				if _, _, err := readFile(t, w.pcap()); !errors.Is(err, capture.ErrNoCalls) {
					t.Errorf("error %v, want %v", err, capture.ErrNoCalls)
				}
				return
			}
			rec := w.read()
			if n, s := total(rec), slow(rec); n != 5 || len(s) > 0 || len(rec.Nodes()) != 1 {
				t.Errorf("%d calls of %v, slow: %v", n, rec.Nodes(), s)
			}
		})
	}
}
