package target

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testDeadline is far beyond what any of these tests needs.
const testDeadline = time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

// listen accepts connections and hands each to serve, until the test ends.
func listen(t *testing.T, network, address string, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l
}

func echo(conn net.Conn) { io.Copy(conn, conn) }

func parsed(t *testing.T, text string) Target {
	t.Helper()
	target, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func dial(t *testing.T, target Target) (*Conn, Phases) {
	t.Helper()
	conn, phases, err := Dial(testContext(t), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, phases
}

// roundTrip sends text and reads it back from an echo server.
func roundTrip(t *testing.T, conn *Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestDialTCP(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, phases := dial(t, parsed(t, l.Addr().String()))
	roundTrip(t, conn, "PING\r\n")
	if phases.DNS != 0 || phases.Connect <= 0 || phases.TLS != 0 {
		t.Errorf("phases %+v", phases)
	}
	if conn.RemoteAddr().String() != l.Addr().String() || conn.LocalAddr() == nil || conn.Target().Port == 0 {
		t.Errorf("from %v to %v", conn.LocalAddr(), conn.RemoteAddr())
	}
	if _, secure := conn.ConnectionState(); secure {
		t.Error("TLS on a plain connection")
	}
	if _, ok := conn.PeerPID(); ok {
		t.Error("a pid over TCP")
	}
	if raw, err := conn.SyscallConn(); err != nil || raw.Control(func(uintptr) {}) != nil {
		t.Error("no raw connection", err)
	}
}

func TestDialIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 loopback: ", err)
	} else {
		l.Close()
	}
	l := listen(t, "tcp", "[::1]:0", echo)
	conn, _ := dial(t, parsed(t, "redis://"+l.Addr().String()))
	roundTrip(t, conn, "PING\r\n")
}

func TestDialUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.sock")
	listen(t, "unix", path, echo)
	conn, phases := dial(t, parsed(t, "unix://"+path))
	roundTrip(t, conn, "PING\r\n")
	if phases.DNS != 0 || phases.Connect <= 0 {
		t.Errorf("phases %+v", phases)
	}
	if _, err := conn.TCPInfo(); !errors.Is(err, ErrNotSupported) {
		t.Errorf("TCPInfo: %v", err)
	}
	if _, ok := conn.LastArrival(); ok {
		t.Error("an arrival time on a unix socket")
	}
	if _, ok := conn.ReadDelay(); ok {
		t.Error("a read delay on a unix socket")
	}
}

// TestDialTriesEachAddress: a name with several addresses, of which the first refuses.
func TestDialTriesEachAddress(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	target := parsed(t, "somewhere:"+portOf(l.Addr()))
	answer := func(ips ...string) Dialer {
		return Dialer{Lookup: func(context.Context, string) ([]netip.Addr, error) {
			var list []netip.Addr
			for _, ip := range ips {
				list = append(list, netip.MustParseAddr(ip))
			}
			return list, nil
		}}
	}
	conn, phases, err := answer("127.0.0.2", "::ffff:127.0.0.1").Dial(testContext(t), target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	roundTrip(t, conn, "PING\r\n")
	if phases.DNS <= 0 || phases.Connect <= 0 {
		t.Errorf("phases %+v", phases)
	}
	_, _, err = answer("127.0.0.2", "127.0.0.3").Dial(testContext(t), target)
	if !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	want := "127.0.0.2:" + portOf(l.Addr()) + " connection refused, 127.0.0.3:" + portOf(l.Addr()) +
		" connection refused; check"
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	_, _, err = answer().Dial(testContext(t), target)
	if !errors.Is(err, ErrNameNotFound) {
		t.Error(err)
	}
}

func portOf(addr net.Addr) string {
	_, port, _ := net.SplitHostPort(addr.String())
	return port
}

// closedPort is one that nothing listens on.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestDialErrors(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for name, test := range map[string]struct {
		target Target
		kind   error
		say    string
	}{
		"refused":        {parsed(t, "redis://:S3CRET@"+closedPort(t)), ErrRefused, "nothing listens on 127.0.0.1:"},
		"dead socket":    {Target{Network: "unix", Path: dead}, ErrRefused, "nothing listens on it"},
		"no socket":      {Target{Network: "unix", Path: dir + "/none"}, ErrNoSocket, "unixsocket"},
		"long path":      {Target{Network: "unix", Path: dir + "/" + strings.Repeat("x", 120)}, ErrBadTarget, "107"},
		"bad port":       {Target{Network: "tcp", Host: "h"}, ErrBadTarget, "1 to 65535"},
		"no host":        {Target{Network: "tcp", Port: 1}, ErrBadTarget, "host is empty"},
		"zero":           {Target{}, ErrBadTarget, "network"},
		"no server name": {Target{Network: "unix", Path: dead, TLS: &TLSOptions{}}, ErrBadTarget, "--sni"},
		"no such name":   {parsed(t, "redis://:S3CRET@no-such-host.invalid"), nil, "no-such-host.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Dial(testContext(t), test.target)
			if err == nil || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(),
				test.say) {
				t.Errorf("%v; want %v with %q", err, test.kind, test.say)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "S3CRET") {
				t.Error(err)
			}
			var known *Error
			if !errors.As(err, &known) {
				t.Errorf("%T is no *Error", err)
			}
		})
	}
}

// TestLookupErrors: without the network, from what a resolver can say.
func TestLookupErrors(t *testing.T) {
	for say, test := range map[string]struct {
		err  error
		kind error
	}{
		"DNS has no address":                   {&net.DNSError{IsNotFound: true}, ErrNameNotFound},
		"no answer from DNS":                   {&net.DNSError{IsTimeout: true}, ErrTimeout},
		"canceled":                             {context.Canceled, context.Canceled},
		`resolving "name": server misbehaving`: {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, nil},
		`resolving "name": unheard of`:         {errors.New("unheard of"), nil},
	} {
		d := Dialer{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, test.err }}
		_, phases, err := d.Dial(testContext(t), parsed(t, "name"))
		if !errors.Is(err, test.err) || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(),
			say) {
			t.Errorf("%s: %v", say, err)
		}
		if phases.DNS <= 0 || phases.Connect != 0 {
			t.Errorf("%s: %+v", say, phases)
		}
	}
}

// TestDialTimeout: an address that never answers, in a context that is over.
func TestDialTimeout(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, _, err := Dial(ctx, parsed(t, closedPort(t)))
	var known *Error
	if !errors.Is(err, ErrTimeout) || !errors.As(err, &known) || !known.Timeout() {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, _, err = Dial(ctx, parsed(t, closedPort(t))); !errors.Is(err, context.Canceled) || errors.Is(err,
		ErrTimeout) {
		t.Errorf("%v", err)
	}
}
