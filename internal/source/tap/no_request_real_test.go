//go:build linux

package tap

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// TestTLSIdleClose: the alert before the end of an idle connection is no call that nobody answers, and it is no use of
// the connection; the handshake and its session tickets are no calls either. At the client's end a ticket may be taken
// for the reply to the first request, whose time is therefore left out.
func TestTLSIdleClose(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	cert, key := selfSigned(t, t.TempDir())
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*tls.Config{
		"1.2": {MaxVersion: tls.VersionTLS12}, "1.3": {},
		"1.3 with a client's certificate": {Certificates: []tls.Certificate{pair}},
	} {
		more := []string{"--bind", "127.0.0.1", "127.0.0.2"}
		if c.Certificates != nil {
			more = append(more, "--tls-auth-clients", "yes", "--tls-ca-cert-file", cert)
		}
		c.InsecureSkipVerify = true                                  //nolint:gosec // the test's own server
		for _, address := range []string{"127.0.0.1", "127.0.0.2"} { // within this host, as from another
			t.Run(name+" "+address, func(t *testing.T) { testTLSIdleClose(t, address, c, more) })
		}
	}
}

func testTLSIdleClose(t *testing.T, address string, config *tls.Config, more []string) {
	const pause = 300 * time.Millisecond
	_, port, plain := startTLS(t, more...)
	at := net.JoinHostPort(address, strconv.Itoa(port))
	await.Until(t, "the server listens at the address", func() bool { return listensAt(at) })
	other := newTalk(t, plain)
	want := map[netip.AddrPort]struct{ calls, waiting int }{}
	dial := func(calls, waiting int) *talk {
		c, err := tls.Dial("tcp", at, config)
		if err != nil {
			t.Fatal(err)
		}
		want[c.LocalAddr().(*net.TCPAddr).AddrPort()] = struct{ calls, waiting int }{calls, waiting}
		return &talk{t: t, conn: c}
	}
	old := dial(5, 0)
	old.ask("+PONG\r\n", "PING")
	r := openRaw(t, port, constants{"slow_ns": uint64(10e6)})
	idle, used, waiting := dial(0, 0), dial(5, 0), dial(0, 1)
	for range 5 {
		used.ask("+PONG\r\n", "PING")
		old.ask("+PONG\r\n", "PING")
	}
	waiting.send("BLPOP", "list", "0")
	atRest(t, port)
	await.Pass(pause)
	for _, k := range []*talk{idle, used, waiting, old} {
		k.conn.Close()
	}
	other.alone()
	_, counts := r.finish(t)
	ends := 0
	for _, e := range r.closes {
		client, _ := endsOf(&e.Addr)
		w, ours := want[client.AddrPort]
		if !ours {
			continue
		}
		ends++
		if e.Role == roleClient && address == "127.0.0.1" {
			continue // its server's end parses for both
		}
		if calls := int(e.Calls - e.NoCalls); calls != w.calls || int(e.Outstanding) != w.waiting {
			t.Errorf("at end %d of %d calls %d and %d waiting were seen; %v", e.Role, w.calls, calls, e.Outstanding,
				counts)
		}
		if e.ClosedBy == kernelClosedByCLOSED_BY_NEITHER || e.Now-max(e.LastIn, e.LastOut) < uint64(pause) {
			t.Errorf("end %d, with %d calls, was closed by %d after %d ns", e.Role, w.calls, e.ClosedBy,
				e.Now-max(e.LastIn, e.LastOut))
		}
	}
	if ends != 2*len(want) {
		t.Errorf("%d ends of connections were seen, want %d", ends, 2*len(want))
	}
}

// TestNoRequest: what proxies and health checks send before or instead of requests shifts no pair.
func TestNoRequest(t *testing.T) {
	needs.Real(t, needs.BPF)
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + "\x7f\x00\x00\x01\x7f\x00\x00\x01\x10\x00\x20\x00"
	for name, tt := range map[string]struct {
		header, after string
		calls         int
	}{
		"proxy protocol 1":         {"PROXY TCP4 127.0.0.1 127.0.0.1 4096 8192\r\n", command("PING"), 2},
		"proxy protocol 2":         {v2, command("PING"), 2},
		"HTTP health check":        {"GET / HTTP/1.1\r\nHost: redis\r\nUser-Agent: check\r\n\r\n", "", 0},
		"HTTP 1.0, without a host": {"OPTIONS /health HTTP/1.0\r\n\r\n", "", 0},
		"inline":                   {"", "PING\r\n", 2},
		"nothing":                  {"", "", 0},
	} {
		for _, split := range []bool{false, true} { // header and requests in one write, or in two
			t.Run(name+map[bool]string{true: ", split"}[split], func(t *testing.T) {
				checkNoRequest(t, tt.header, tt.after, split, tt.calls)
			})
		}
	}
}

func checkNoRequest(t *testing.T, header, request string, split bool, calls int) {
	t.Helper()
	port := proxied(t, header)
	r := openRaw(t, port, constants{
		"sample_per_tick": uint32(1 << 30), "slow_ns": uint64(1) << 60, "strict_all": uint32(1),
	})
	serverPIDs.Store(port, 0) // it is this process, which need not rest
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write := func(text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	first := header + request
	if split && header != "" {
		write(header)
		await.Pass(5 * time.Millisecond) // it may also come with what follows; both are right
		first = request
	}
	for i := range calls {
		if i > 0 {
			first = request
		}
		write(first)
		got := make([]byte, len("+PONG\r\n"))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "+PONG\r\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if calls == 0 {
		write(first)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil { // a half-close: the rest is read
		t.Fatal(err)
	}
	_, _ = io.ReadAll(c) // a reset is the end, too
	seen, counts := r.finish(t)
	for _, role := range []kernelRole{roleServer, roleClient} {
		n := 0
		for _, e := range seen {
			if e.Role == role {
				n++
				if int(e.ReqBytes) != len(request) {
					t.Errorf("a request of %d bytes at end %d, want %d", e.ReqBytes, role, len(request))
				}
			}
		}
		if n != calls {
			t.Errorf("%d calls at end %d, want %d: %v", n, role, calls, counts)
		}
	}
	if want := map[bool]uint64{true: 2}[header != ""]; counts["not_redis"] != want { // at both ends
		t.Errorf("%d headers were counted, want %d: %v", counts["not_redis"], want, counts)
	}
}

// proxied starts a server that takes a header, as one with the PROXY protocol does, and answers PING until its client
// sends no more.
func proxied(t *testing.T, header string) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var all strings.Builder
		buf := make([]byte, 4096)
		answered := 0
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			all.Write(buf[:n])
			text := strings.TrimPrefix(all.String(), header)
			for ; answered < strings.Count(text, "PING\r\n"); answered++ {
				if _, err := io.WriteString(c, "+PONG\r\n"); err != nil {
					return
				}
			}
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
