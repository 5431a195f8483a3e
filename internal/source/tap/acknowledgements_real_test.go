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

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// serverOnly has a watch take what it sees of the server's end alone, as if the clients' kernel were another. watched
// is closed when acknowledgements are watched.
func serverOnly(p *taper) (watched chan struct{}) {
	watched = make(chan struct{})
	p.recorder.onRemoteClient = func() {
		p.watchAcks()
		close(watched)
	}
	r := p.Tap.reports.(*tapedReports)
	r.reports = serverReports{r.reports}
	return watched
}

type serverReports struct{ reports }

func (r serverReports) ReadInto(rec *ringbuf.Record) error {
	for {
		err := r.reports.ReadInto(rec)
		if err != nil || len(rec.RawSample) < 2 || kernelRole(rec.RawSample[1]) != roleClient {
			return err
		}
		switch kernelEventType(rec.RawSample[0]) {
		case evCall, evOpen, evClose, evStatus:
		default:
			return nil
		}
	}
}

// lateHooks is closed when acknowledgements and sends are watched.
func lateHooks(tap *Tap) (watched chan struct{}) {
	watched = make(chan struct{})
	left := 2
	then := func(attach func()) func() {
		return func() {
			attach()
			if left--; left == 0 {
				close(watched)
			}
		}
	}
	tap.recorder.onRemoteClient, tap.recorder.onParsedClient = then(tap.watchAcks), then(tap.watchSends)
	return watched
}

func TestRealAcknowledged(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer, needs.Command("tc", "iproute2"))
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	p := openTaped(t, Options{Nodes: nodeAt(h.here, port), Slow: 20 * time.Millisecond})
	talkFrom := func() *talk {
		c := h.dial(t, port)
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		return &talk{t: t, conn: c}
	}
	const slow, bytes = 4, 20_000
	early := talkFrom()
	// nobody listens to acknowledgements yet, and when this one came is not known
	early.ask("+OK\r\n", "DEBUG", "SLEEP", "0.04")
	good := talkFrom()
	watched := serverOnly(p)
	p.start(t)
	<-watched
	early.ask("+PONG\r\n", "PING")
	for i := range 200 {
		good.ask("$5\r\nhello\r\n", "ECHO", "hello")
		if i%50 == 0 {
			good.ask("+OK\r\n", "DEBUG", "SLEEP", "0.04")
		}
		if i == 120 {
			await.Pass(60 * time.Millisecond) // the client's kernel puts the acknowledgement off, for 40 ms
		}
	}
	far := talkFrom()
	h.slowPath(t)
	value := strings.Repeat("v", bytes)
	far.ask(fmt.Sprintf("$%d\r\n%s\r\n", bytes, value), "ECHO", value)
	far.ask("+PONG\r\n", "PING") // the acknowledgement of the reply before came with it, at the latest
	p.stop(t)
	local := func(k *talk) string { return k.conn.LocalAddr().String() }
	checked(t, p, "acknowledged", acknowledgedMade{
		Early: local(early), Good: local(good), Far: local(far), Slow: slow, Bytes: bytes, PathNs: onSlowPath(bytes),
	}, checkAcknowledged)
}

func TestRealAcknowledgedByOneThatDoesNotRead(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer, needs.Command("nft", "nftables"))
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	p := openTaped(t, Options{Nodes: nodeAt(h.here, port), Slow: 20 * time.Millisecond})
	watched := serverOnly(p)
	p.start(t)
	c := h.dial(t, port)
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
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
	_ = lost.conn.SetDeadline(time.Now().Add(2 * time.Minute))
	lost.ask("+PONG\r\n", "PING")
	h.drop(t, lost.conn)
	lost.send("ECHO", "lost")
	whenResent(t, lost.conn)
	h.exec(t, "nft", "flush", "ruleset")
	lost.expect("$4\r\nlost\r\n")
	lost.ask("+PONG\r\n", "PING")
	p.stop(t)
	made := unreadMade{c.LocalAddr().String(), lost.conn.LocalAddr().String()}
	checked(t, p, "acknowledged-unread", made, checkUnread)
}

// whenFull waits until a socket takes no more bytes.
func whenFull(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var since time.Time
	last := 0
	await.Until(t, "the socket is full", func() bool {
		n := 0
		if err := errors.Join(raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }),
			err); err != nil {
			t.Fatal(err)
		}
		if n != last || n == 0 {
			since = time.Now()
		}
		last = n
		return time.Since(since) > 100*time.Millisecond
	})
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
	await.Until(t, "it was sent again", func() bool {
		b, err := os.ReadFile("/proc/thread-self/net/tcp") // the first thread may be in the namespace, see dial
		if err != nil {
			t.Fatal(err)
		}
		// columns: sl local rem st tx:rx tr:tm->when retrnsmt …; the remote port is that of the client
		want := fmt.Sprintf(":%04X", netip.MustParseAddrPort(c.LocalAddr().String()).Port())
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 6 && strings.HasSuffix(f[2], want) && f[6] != "00000000" {
				return true
			}
		}
		return false
	})
}

// BenchmarkAck: what the program of acknowledgements takes for a segment that comes in, of a client of this host and of
// another, by the kernel's own count (with the two reads of the clock that the count takes).
func BenchmarkAck(b *testing.B) {
	needs.Real(b, needs.BPF, needs.NetworkNamespaces, needs.RedisServer, needs.QuietCPU)
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
