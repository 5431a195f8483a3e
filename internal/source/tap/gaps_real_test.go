//go:build linux

package tap

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestGaps: a client that takes a reply from its socket by splice shows it to no system call that is followed. The
// order of its calls is lost, which is counted, and known again later; no call is matched with another's reply.
func TestGaps(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{
		"strict_all": uint32(1), "sample_per_tick": uint32(1 << 30), "slow_ns": uint64(1) << 60,
	})
	k := newTalk(t, port)
	const before, after = 10, 60
	for range before {
		k.ask("$-1\r\n", "GET", "no-such-key")
	}
	k.send("PING")
	splice(t, k.conn.(*net.TCPConn), len("+PONG\r\n"))
	for range after {
		k.ask(":0\r\n", "STRLEN", "no-such-key")
	}
	calls, counts := r.finish(t)
	if counts["gaps"] != 1 || counts["lost"] != 2 { // that one, and the next
		t.Errorf("the gap was not seen: %v", counts)
	}
	if counts["calls.server"] != before+1+after {
		t.Errorf("the server's end read and wrote everything: %v", counts)
	}
	known := 0
	for _, e := range calls {
		if e.Role != roleClient {
			continue
		}
		want := len("$-1\r\n")
		if e.Number > before {
			want = len(":0\r\n")
			known++
		}
		if int(e.RepBytes) != want {
			t.Errorf("call %d has a reply of %d bytes, want %d", e.Number, e.RepBytes, want)
		}
	}
	if known == 0 || known > after {
		t.Errorf("%d of %d calls after the gap were reported: %v", known, after, counts)
	}
}

// TestSendfile: a request that a client sends by sendfile is in no buffer of a system call that is read. It is counted
// as one that was not seen, and the calls after it are matched again.
func TestSendfile(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{
		"strict_all": uint32(1), "sample_per_tick": uint32(1 << 30), "slow_ns": uint64(1) << 60,
	})
	k := newTalk(t, port)
	k.ask("$-1\r\n", "GET", "no-such-key")
	f, err := os.Create(filepath.Join(t.TempDir(), "request"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err = f.WriteString(command("PING")); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = k.conn.(*net.TCPConn).ReadFrom(f) // by sendfile
	}
	if err != nil {
		t.Fatal(err)
	}
	k.expect("+PONG\r\n")
	const after = 60
	for range after {
		k.ask(":0\r\n", "STRLEN", "no-such-key")
	}
	_, counts := r.finish(t)
	if counts["no_buffer"] == 0 || counts["unparsed"] != 1 || counts["calls.server"] != 2+after ||
		counts["calls.client"] < after/2 || counts["calls.client"] > 1+after {
		t.Errorf("%v", counts)
	}
}

// splice moves bytes from a socket to a pipe.
func splice(t *testing.T, c *net.TCPConn, bytes int) {
	t.Helper()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for bytes > 0 {
		var n int64
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, failed = unix.Splice(int(fd), nil, int(pw.Fd()), nil, bytes, unix.SPLICE_F_NONBLOCK)
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err = errors.Join(err, failed); err != nil || n == 0 {
			t.Fatalf("%d bytes: %v", n, err)
		}
		bytes -= int(n)
	}
}

// TestRealOtherHostIPv6: the acknowledgements of a client at another address are seen over IPv6, too, and its calls are
// counted at both ends.
func TestRealOtherHostIPv6(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer)
	h := newOtherHost(t)
	h.run(t, "ip addr add fd00:5109::1/64 nodad dev "+h.device)
	h.run(t, "ip -n "+h.name+" addr add fd00:5109::2/64 nodad dev "+h.device+"p")
	h.here = "fd00:5109::1"
	port := startServerAt(t, h.here)
	p := openTaped(t, Options{Nodes: nodeAt(h.here, port), Slow: 20 * time.Millisecond})
	watched := lateHooks(p.Tap)
	p.start(t)
	const calls = 50
	k := &talk{t: t, conn: h.dial(t, port)}
	for range calls {
		k.ask("$-1\r\n", "GET", "no-such-key")
	}
	<-watched
	k.ask("+OK\r\n", "DEBUG", "SLEEP", "0.03")
	k.ask("+OK\r\n", "DEBUG", "SLEEP", "0.03")
	k.conn.Close()
	atRest(t, port)
	p.stop(t)
	if n := len(p.rec.EventsOf(recording.SourceTap, "server", recording.KindAcknowledged)); n == 0 {
		t.Error("no acknowledgement of a slow call's reply was seen")
	}
	got := countsOf(t, p.rec)
	if got["server server GET"] < calls || got["server client GET"] < calls {
		t.Errorf("%d calls made: %v", calls, got)
	}
}
