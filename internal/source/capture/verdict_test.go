package capture_test

import (
	"strings"
	"testing"
	"time"

	"slowpath/internal/diagnose/verdict"
)

// TestVerdicts: what the diagnosis makes of captures. It finds what packets show, and nothing else.
func TestVerdicts(t *testing.T) {
	get, value := cmd("GET", "key"), "$5\r\nvalue\r\n"
	for _, c := range []struct {
		name    string
		make    func(w *wire)
		verdict string
		cause   string // of the first finding
		say     string // in the summary
	}{
		{"healthy, client's side", func(w *wire) {
			w.dial(40001, 300*us, 10*us).calls(1000, 350*us)
		}, verdict.Healthy, "", "none of 1 000 calls"},
		{"healthy, server's side", func(w *wire) {
			f := w.dial(40001, 10*us, 300*us)
			for range 1000 {
				f.call(get, value, 40*us)
				w.wait(300 * us)
				f.ack(client)
				w.wait(10 * ms)
			}
		}, verdict.Healthy, "", "none of 1 000 calls"},
		{"a far server", func(w *wire) {
			w.dial(40001, 80*ms, 10*us).calls(300, 81*ms)
		}, verdict.Findings, "rtt-floor", ""},
		{"a near server that takes as long for each call", func(w *wire) {
			w.dial(40001, 300*us, 10*us).calls(300, 81*ms)
		}, verdict.Inconclusive, "", "It is not the distance: a SYN has its answer after 300 µs."},
		{"a far server, its connection from before", func(w *wire) {
			w.flow(40001).calls(300, 81*ms)
		}, verdict.Inconclusive, "", "(median 81.3 ms). Whether that is the distance"},
		{"a far server, seen from its side", func(w *wire) {
			f := w.dial(40001, 10*us, 80*ms)
			for range 300 {
				f.call(get, value, ms)
				w.wait(80 * ms)
				f.ack(client)
			}
		}, verdict.Healthy, "", "none of 300 calls"},
		{"the server's process does not run, incident 004", func(w *wire) {
			f := w.dial(40001, 300*us, 10*us)
			for range 20 {
				f.calls(20, 350*us)
				f.send(client, get)
				w.wait(41 * ms)
				f.ack(server)
				w.wait(3 * ms)
				f.send(server, value)
				w.wait(10 * ms)
			}
		}, verdict.Inconclusive, "", "acknowledged 20 requests after 41 ms"},
		{"packets that are cut", func(w *wire) {
			w.snap = 200
			f := w.dial(40001, 300*us, 10*us)
			f.calls(9, 350*us)
			for range 100 {
				f.call(strings.Repeat(get, 10), strings.Repeat(value, 10), 350*us)
				w.wait(10 * ms)
			}
		}, verdict.Inconclusive, "", "Most was not seen"},
		{"the same, too seldom to be a pattern", func(w *wire) {
			f := w.dial(40001, 300*us, 10*us)
			for range 3 {
				f.calls(300, 350*us)
				f.send(client, get)
				w.wait(41 * ms)
				f.ack(server)
				w.wait(3 * ms)
				f.send(server, value)
				w.wait(10 * ms)
			}
		}, verdict.Healthy, "", "too few to be a pattern. Clients felt 19 stalls per minute, 836 ms of each minute; " +
			"p99.9 44 ms, worst 44 ms. 100 % of that time passed at the server."},
		{"slow for no reason that packets show", func(w *wire) {
			f := w.dial(40001, 300*us, 10*us)
			for range 20 {
				f.calls(20, 350*us)
				f.call(get, value, 30*ms)
				w.wait(10 * ms)
			}
		}, verdict.Inconclusive, "", "nothing that was seen explains them."},
		{"a pool that closes idle connections, incident 001", func(w *wire) {
			for i := range 12 {
				f := w.dial(uint16(40001+i), 16*ms, 10*us)
				f.call(cmd("HELLO", "3"), "%0\r\n", ms)
				f.calls(20, ms)
				w.wait(5 * time.Minute)
				f.fin(client)
				w.wait(15 * ms)
				f.fin(server)
				w.wait(20 * time.Second)
			}
		}, verdict.Findings, "pool-idle-reap-redial", ""},
		{"a path that loses packets", func(w *wire) {
			f := w.dial(40001, 300*us, 10*us)
			for range 20 {
				f.calls(20, 350*us)
				f.put(client, get, nil)
				w.wait(204 * ms)
				f.call(get, value, 350*us)
				w.wait(10 * ms)
			}
		}, verdict.Findings, "packet-loss-rto", ""},
		{"Nagle and delayed acknowledgements", func(w *wire) {
			f := w.dial(40001, 10*us, 300*us)
			f.calls(20, 40*us)
			for range 40 {
				f.send(client, get[:10])
				w.wait(41 * ms)
				f.ack(server)
				w.wait(300 * us)
				f.call(get[10:], value, 40*us)
				w.wait(300 * us)
				f.ack(client)
				w.wait(10 * ms)
			}
		}, verdict.Findings, "nagle-delayed-ack", ""},
		{"a client that does not read", func(w *wire) {
			f := w.dial(40001, 10*us, 300*us)
			big := strings.Repeat("x", 100000)
			for range 10 {
				f.calls(10, 40*us)
				f.send(client, cmd("GET", "big"))
				w.wait(100 * us)
				f.send(server, "$200000\r\n"+big)
				w.wait(300 * us)
				f.window[client] = 0
				f.ack(client)
				w.wait(300 * ms)
				f.window[client] = 500
				f.ack(client)
				w.wait(10 * us)
				f.send(server, big+"\r\n")
				w.wait(300 * us)
				f.ack(client)
				w.wait(10 * ms)
			}
		}, verdict.Findings, "receiver-stall", ""},
		{"a command that holds the server", func(w *wire) {
			f, g := w.dial(40001, 300*us, 10*us), w.dial(40002, 300*us, 10*us)
			for range 20 {
				f.calls(20, 350*us)
				g.send(client, cmd("KEYS", "*"))
				w.wait(ms)
				f.send(client, get)
				w.wait(30 * ms)
				g.send(server, "*0\r\n")
				w.wait(20 * us)
				f.send(server, value)
				w.wait(10 * ms)
			}
		}, verdict.Inconclusive, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			c.make(w)
			d := verdict.Diagnose(w.read(), "test")
			var found []string
			for _, f := range d.Findings {
				found = append(found, f.Cause)
			}
			first := strings.Join(found[:min(len(found), 1)], "")
			if d.Verdict != c.verdict || first != c.cause || !strings.Contains(d.Summary, c.say) {
				t.Errorf("%s %v: %s\n%+v", d.Verdict, found, d.Summary, d.Account)
			}
			t.Logf("%s %v %s", d.Verdict, found, d.Summary)
		})
	}
}

// TestSizesOfSegments: what is sent again and again into a closed window, or while the path is down, says nothing of
// sizes; what is lost while smaller segments arrive does.
func TestSizesOfSegments(t *testing.T) {
	for name, c := range map[string]struct {
		window uint16 // of the client that the large reply is for
		others bool   // are answered meanwhile
		hole   bool
	}{
		"a hole": {500, true, true}, "a closed window": {0, true, false}, "a path that is down": {500, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			f, g := w.dial(40001, 10*us, 300*us), w.dial(40002, 10*us, 300*us)
			for _, small := range []*flow{f, g} {
				small.calls(20, 40*us)
			}
			f.send(client, cmd("GET", "big"))
			w.wait(40 * us)
			f.window[client] = c.window
			f.ack(client)
			segment := "$5000\r\n" + strings.Repeat("x", 1300)
			for range 8 {
				f.put(server, segment, nil)
				w.wait(200 * ms)
				if c.others {
					g.calls(3, 40*us)
				}
			}
			g.calls(20, 40*us)
			hole := false
			for _, found := range verdict.Diagnose(w.read(), "test").Findings {
				hole = hole || strings.HasPrefix(found.Title, "Large segments never arrive")
			}
			if hole != c.hole {
				t.Errorf("a hole: %v", hole)
			}
		})
	}
}
