//go:build linux

package tap

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"slowpath/internal/recording"
)

// serverOnly passes on what a tap sees of the server's end alone, as if the clients' kernel were another, until stop is
// called. watched is closed when acknowledgements are watched.
func serverOnly(t *testing.T, tap *Tap) (watched chan struct{}, stop func()) {
	t.Helper()
	end, done, watched := make(chan struct{}), make(chan struct{}), make(chan struct{})
	tap.recorder.onRemoteClient = func() {
		tap.watchAcks()
		close(watched)
	}
	go func() {
		defer close(done)
		var rec ringbuf.Record
		for last := false; ; {
			tap.ring.SetDeadline(time.Now().Add(time.Millisecond))
			for tap.ring.ReadInto(&rec) == nil {
				raw := rec.RawSample
				if of := kernelEventType(raw[0]); (of == evCall || of == evOpen || of == evClose || of == evStatus) &&
					kernelRole(raw[1]) == roleClient {
					continue
				}
				tap.take(raw)
			}
			if last {
				tap.recorder.settle(1 << 62)
				tap.count()
				return
			}
			select {
			case <-end:
				last = true
			default:
			}
		}
	}()
	return watched, func() {
		close(end)
		<-done
		if err := tap.Close(); err != nil {
			t.Error(err)
		}
	}
}

// acks are the acknowledgements of a recording by connection.
func acks(rec *recording.Recording) (events map[string][]recording.Event, details map[string][]recording.AckDetail) {
	events, details = map[string][]recording.Event{}, map[string][]recording.AckDetail{}
	for _, e := range rec.EventsOf(recording.SourceTap, "server", recording.KindAcknowledged) {
		d := recording.DetailOf[recording.AckDetail](e)
		events[d.Client], details[d.Client] = append(events[d.Client], e), append(details[d.Client], d)
	}
	return events, details
}

// TestAcknowledged: seen from the server's end alone, a reply on a slow path is acknowledged as late as the path takes;
// a slow call's is recorded however early it comes, and that of another call on a good path is not.
func TestAcknowledged(t *testing.T) {
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	tap, rec := openAt(t, h.here, port, Options{Slow: 20 * time.Millisecond})
	talkFrom := func() *talk {
		c := h.dial(t, port)
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		return &talk{t: t, conn: c}
	}
	const slow, bytes = 4, 20_000
	early := talkFrom()
	// nobody listens to acknowledgements yet, and when this one came is not known
	early.ask("+OK\r\n", "DEBUG", "SLEEP", "0.04")
	good := talkFrom()
	watched, stop := serverOnly(t, tap)
	<-watched
	early.ask("+PONG\r\n", "PING")
	for i := range 200 {
		good.ask("$5\r\nhello\r\n", "ECHO", "hello")
		if i%50 == 0 {
			good.ask("+OK\r\n", "DEBUG", "SLEEP", "0.04")
		}
		if i == 120 {
			time.Sleep(60 * time.Millisecond) // the client's kernel puts the acknowledgement off, for 40 ms
		}
	}
	far := talkFrom()
	h.slowPath(t)
	value := strings.Repeat("v", bytes)
	far.ask(fmt.Sprintf("$%d\r\n%s\r\n", bytes, value), "ECHO", value)
	far.ask("+PONG\r\n", "PING") // the acknowledgement of the reply before came with it, at the latest
	stop()
	rec.Index()
	events, details := acks(rec)
	local := func(k *talk) string { return k.conn.LocalAddr().String() }
	slowOnes := map[int64]recording.Call{} // of the good path, by their end: on a busy machine some ECHO is slow, too
	for _, c := range rec.Calls {
		if c.Side != recording.Server {
			t.Errorf("seen from another end, too: %+v", c)
		}
		if c.Conn == local(good) {
			slowOnes[c.EndNs] = c
		}
	}
	if n := len(events[local(early)]); n != 0 {
		t.Errorf("the acknowledgement of a reply that was sent before: %+v", details[local(early)])
	}
	if n := len(events[local(good)]); n != len(slowOnes) || n < slow {
		t.Errorf("%d acknowledgements on a good path of %d slow calls, %d of them made so: %+v", n, len(slowOnes), slow,
			details[local(good)])
	}
	for i, e := range events[local(good)] {
		c, ok := slowOnes[e.TimeNs]
		if !ok {
			t.Errorf("the reply of no slow call: %+v", e)
		}
		if d := details[local(good)][i]; d.Retransmitted != 0 || d.WindowClosed || d.Unacked != c.ReplyBytes {
			t.Errorf("%+v, of %+v", d, c)
		}
	}
	if n := len(events[local(far)]); n != 1 {
		t.Fatalf("%d acknowledgements on the slow path: %+v", n, details[local(far)])
	}
	e, d := events[local(far)][0], details[local(far)][0]
	if d.Unacked < bytes/2 || d.Unacked > 2*bytes || d.MinWaitNs > e.DurationNs || d.WindowClosed {
		t.Errorf("%d ns: %+v", e.DurationNs, d)
	}
	if e.DurationNs < onSlowPath(bytes) {
		t.Errorf("%d bytes were acknowledged in %d ns, which the path cannot do", bytes, e.DurationNs)
	}
	if late, _ := rec.Series(recording.SourceTap, recording.SubjectSelf, "tap.late_acks").Last(); late != 1 {
		t.Errorf("%v late acknowledgements counted", late)
	}
}

// TestAcknowledgedByOneThatDoesNotRead: where the client does not read, its window is recorded as closed; where
// segments are lost, as retransmitted.
func TestAcknowledgedByOneThatDoesNotRead(t *testing.T) {
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	tap, rec := openAt(t, h.here, port, Options{Slow: 20 * time.Millisecond})
	watched, stop := serverOnly(t, tap)
	c := h.dial(t, port)
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	<-watched
	if err := c.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	const bytes = 60_000 // in one write of the server
	value := strings.Repeat("v", bytes)
	if _, err := io.WriteString(c, command("ECHO", value)); err != nil {
		t.Fatal(err)
	}
	whenFull(t, c.(*net.TCPConn))
	if _, err := io.CopyN(io.Discard, c, bytes+int64(len("$60000\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	(&talk{t: t, conn: c}).ask("+PONG\r\n", "PING")

	lost := &talk{t: t, conn: h.dial(t, port)}
	_ = lost.conn.SetDeadline(time.Now().Add(30 * time.Second))
	lost.ask("+PONG\r\n", "PING")
	h.drop(t, lost.conn)
	lost.send("ECHO", "lost")
	whenResent(t, lost.conn)
	h.exec(t, "nft", "flush", "ruleset")
	lost.expect("$4\r\nlost\r\n")
	lost.ask("+PONG\r\n", "PING")
	stop()
	rec.Index()
	_, details := acks(rec)
	if d := details[c.LocalAddr().String()]; len(d) != 1 || !d[0].WindowClosed {
		t.Errorf("of the client that did not read: %+v", d)
	}
	if d := details[lost.conn.LocalAddr().String()]; len(d) != 1 || d[0].Retransmitted == 0 || d[0].WindowClosed {
		t.Errorf("of the reply that was lost: %+v", d)
	}
}

// whenFull waits until a socket takes no more bytes.
func whenFull(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for same, last, deadline := 0, 0, time.Now().Add(10*time.Second); same < 20; time.Sleep(5 * time.Millisecond) {
		n := 0
		if err := errors.Join(raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }),
			err); err != nil {
			t.Fatal(err)
		}
		if same++; n != last || n == 0 {
			same = 0
		}
		if last = n; time.Now().After(deadline) {
			t.Fatal("the socket never filled")
		}
	}
}

// drop loses all that comes for a connection there.
func (h *otherHost) drop(t *testing.T, c net.Conn) {
	t.Helper()
	port := netip.MustParseAddrPort(c.LocalAddr().String()).Port()
	h.exec(t, "nft", fmt.Sprintf("add table inet t; add chain inet t in { type filter hook input priority 0; }; add "+
		"rule inet t in tcp dport %d drop", port))
}

// whenResent waits until the server's kernel has sent to a connection again.
func whenResent(t *testing.T, c net.Conn) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile("/proc/thread-self/net/tcp") // the first thread may be in the namespace, see dial
		if err != nil {
			t.Fatal(err)
		}
		// columns: sl local rem st tx:rx tr:tm->when retrnsmt …; the remote port is that of the client
		want := fmt.Sprintf(":%04X", netip.MustParseAddrPort(c.LocalAddr().String()).Port())
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 6 && strings.HasSuffix(f[2], want) && f[6] != "00000000" {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was sent again")
		}
	}
}

// BenchmarkAck: what the program of acknowledgements takes for a segment that comes in, of a client of this host and of
// another, by the kernel's own count (with the two reads of the clock that the count takes).
func BenchmarkAck(b *testing.B) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Skip("needs statistics of programs: ", err)
	}
	defer stats.Close()
	h := newOtherHost(b)
	for _, ip := range []string{"127.0.0.1", h.here} {
		b.Run(map[bool]string{true: "this host", false: "another"}[ip == "127.0.0.1"], func(b *testing.B) {
			port := startServerAt(b, ip)
			r := openRaw(b, port, constants{"slow_ns": uint64(1) << 60})
			if err := r.attachLate(hookAck); err != nil {
				b.Fatal(err)
			}
			if ip == h.here {
				run(b, h.stampers(b, port, 1, 1), b.N)
			} else {
				run(b, stampers(b, port, 1, 1), b.N)
			}
			of, err := r.coll.Programs[kernelProgOnAck].Stats()
			if err != nil {
				b.Fatal(err)
			}
			r.finish(b)
			b.ReportMetric(float64(of.Runtime.Nanoseconds())/float64(of.RunCount), "ns/segment")
			b.ReportMetric(float64(of.RunCount)/float64(b.N), "segments/call")
		})
	}
}
