//go:build linux

package tap

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

func TestRealWaitsByDesign(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	for name, address := range waitsTapes {
		t.Run(name, func(t *testing.T) { makeWaits(t, name, address) })
	}
}

func makeWaits(t *testing.T, tape, address string) {
	const handshakeCalls = 8 // HANDSHAKE_CALLS of bpf/types.h
	port := startServerAt(t, address)
	old := dialTalk(t, address, port, nil) // it waits since before the watch
	old.send("BRPOP", "old", "0")
	old.taken(port)
	p := openTaped(t, Options{Nodes: nodeAt(address, port), Slow: 10 * time.Millisecond})
	other, k := dialTalk(t, address, port, nil), dialTalk(t, address, port, nil)
	shared := dialTalk(t, address, port, nil)
	pushed := func(k *talk, push ...string) {
		t.Helper()
		k.taken(port)
		await.Pass(byDesign)
		other.send(push...)
	}
	waits := 0
	late := func(reply string, push []string, args ...string) {
		t.Helper()
		k.send(args...)
		pushed(k, push...)
		k.expect(reply)
		waits++
	}
	list, pop := "*2\r\n$1\r\nl\r\n$1\r\nv\r\n", []string{"LPUSH", "l", "v"}
	for range handshakeCalls + 2 { // beyond those that are reported in any case
		late(list, pop, "BLPOP", "l", "0")
	}
	late(list, pop, "brpop", "l", "0")
	late("$1\r\nv\r\n", pop, "BRPOPLPUSH", "l", "m", "0")
	late("$1\r\nv\r\n", pop, "BLMOVE", "l", "m", "LEFT", "RIGHT", "0")
	late("*3\r\n$1\r\nz\r\n$1\r\nv\r\n$1\r\n1\r\n", []string{"ZADD", "z", "1", "v"}, "BZPOPMIN", "z", "0")
	other.send("XGROUP", "CREATE", "s", "BLOCK", "$", "MKSTREAM")
	entry := "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
	late(entry, []string{"XADD", "s", "1-1", "f", "v"}, "xread", "COUNT", "5", "block", "0", "STREAMS", "s", "$")
	k.ask(":0\r\n", "WAIT", "0", "0")
	waits++
	// A group and a consumer with the name of the option are not the option.
	k.ask(entry, "XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "s", ">")
	k.ask("*-1\r\n", "XREAD", "STREAMS", "s", "1-1")
	k.ask("+OK\r\n", "MULTI")
	k.ask("+QUEUED\r\n", "BLPOP", "none", "0")
	waits++
	k.ask("*1\r\n*-1\r\n", "EXEC")

	other.send("LPUSH", "old", "v")
	old.expect("*2\r\n$3\r\nold\r\n$1\r\nv\r\n")
	old.send("BRPOP", "old", "0") // by now it is not known which reply belongs to it
	pushed(old, "LPUSH", "old", "v")
	old.expect("*2\r\n$3\r\nold\r\n$1\r\nv\r\n")

	shared.send("BLPOP", "l", "0")
	shared.send("STRLEN", "x")
	pushed(shared, pop...)
	shared.expect(list + ":0\r\n")

	for _, c := range []*talk{k, shared, old} {
		c.conn.Close()
	}
	other.alone()
	p.readAll(t)
	checked(t, p, tape, waitsMade{
		Waits: waits, Usual: int64(len(k.want) - 2), UsualNs: int64(k.took), // without WAIT and BLPOP
		Client: k.conn.LocalAddr().String(), Shared: shared.conn.LocalAddr().String(),
	}, checkWaits)
}

// TestRealWaitForReplicas: WAIT for a replica that is not there is a slow call, and waits for acknowledgements.
func TestRealWaitForReplicas(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", port), Slow: 10 * time.Millisecond})
	other, k := newTalk(t, port), newTalk(t, port)
	k.ask("+OK\r\n", "SET", "k", "v")
	k.ask(":0\r\n", "WAIT", "0", "0")
	k.ask(":0\r\n", "WAIT", "1", "60")
	k.conn.Close()
	other.alone()
	p.readAll(t)
	waits := 0
	for _, c := range p.rec.Calls {
		if c.Op != "WAIT" {
			continue
		}
		waits++
		var ns int64
		for _, s := range p.rec.SegmentsOf(c.ID) {
			if s.Actor == recording.Server && s.State == recording.AckWait {
				ns += s.ToNs - s.FromNs
			}
		}
		if 2*ns < c.EndNs-c.StartNs {
			t.Errorf("%d of %d ns in ack-wait: %+v", ns, c.EndNs-c.StartNs, p.rec.SegmentsOf(c.ID))
		}
	}
	if waits != 1 {
		t.Errorf("%d slow calls of WAIT, want the one that waited", waits)
	}
}

// TestReadBeforePublished: a client that polls its socket reads a reply before the server's end has told what it did
// for it. The next reply counts both; of the two, only the one that does not wait by design is a call.
func TestReadBeforePublished(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	const rounds = 500
	port := startServer(t)
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", port)})
	other, k := newTalk(t, port), newTalk(t, port)
	raw, err := k.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	polled := func(reply string, args ...string) {
		t.Helper()
		k.send(args...)
		err := raw.Control(func(fd uintptr) {
			n, err := -1, error(unix.EAGAIN)
			for end := time.Now().Add(time.Minute); errors.Is(err, unix.EAGAIN) && time.Now().Before(end); {
				n, err = unix.Read(int(fd), got)
			}
			if err != nil || string(got[:n]) != reply {
				t.Errorf("got %q, want %q (%v)", got[:max(n, 0)], reply, err)
			}
		})
		if err != nil || t.Failed() {
			t.FailNow()
		}
	}
	for range rounds {
		polled(":0\r\n", "WAIT", "0", "0")
		polled("+PONG\r\n", "PING")
	}
	k.send("PING")
	k.taken(port)
	k.expect("+PONG\r\n")
	k.conn.Close()
	other.alone()
	p.readAll(t)
	seen := 0
	for _, e := range p.rec.EventsOf(recording.SourceTap, "", recording.KindClose) {
		if d := recording.DetailOf[recording.ConnDetail](e); d.Client == k.conn.LocalAddr().String() {
			seen++
			if d.Calls != rounds+1 {
				t.Errorf("at the %s's end %d calls were seen, want %d", d.Side, d.Calls, rounds+1)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d ends of the connection were seen, want 2", seen)
	}
}

// TestTLSWaitsByDesign: under TLS the names of commands tell which of them wait by design, wherever they stand in a
// turn.
func TestTLSWaitsByDesign(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	pid, port, _ := startTLS(t)
	r := openRaw(t, port, allCalls())
	r.hook(t, pid, roleServer)
	k := newTLSTalk(t, port)
	var want []bool
	ask := func(waits bool, reply string, requests ...[]string) {
		t.Helper()
		var text strings.Builder
		for _, args := range requests {
			text.WriteString(command(args...))
		}
		k.write(text.String())
		k.expect(reply)
		want = append(want, waits)
	}
	none := "*-1\r\n"
	ask(false, "+PONG\r\n", []string{"PING"})
	ask(true, none, []string{"blpop", "list", "0.01"})
	ask(true, none, []string{"XREAD", "COUNT", "2", "BLOCK", "10", "STREAMS", "s", "$"})
	ask(false, none, []string{"XREAD", "COUNT", "2", "STREAMS", "s", "0"})
	ask(true, "+PONG\r\n"+none, []string{"PING"}, []string{"BRPOP", "BLOCK", "0.01"})
	ask(false, ":0\r\n", []string{"LLEN", "BLOCK"})
	k.write(command("BLPOP", "list", "0")) // its consumer ends
	atRest(t, port)
	k.conn.Close()
	names := r.names(t)
	calls, counts := r.finish(t)
	var got []bool
	for _, e := range calls {
		if e.Role == roleServer && names[e.Op] != "?" {
			got = append(got, e.Flags&flagBlocking != 0)
		}
	}
	for _, e := range r.closes {
		if e.Role == roleServer && (e.Outstanding != 1 || e.Blocking == 0) {
			t.Errorf("at the end %d requests had no reply, blocking %d", e.Outstanding, e.Blocking)
		}
	}
	if !slices.Equal(got, want) || counts["blocking"] != 3 || len(r.closes) == 0 {
		t.Errorf("got %v, want %v; %v", got, want, counts)
	}
}
