package target

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// exchange sends one line to an echo server and reads it back, until the kernel stamps what arrives (see LastArrival:
// it may start late). It returns the wall time before the send that was answered.
func exchange(t *testing.T, conn *Conn) (sent time.Time) {
	t.Helper()
	await.Until(t, "a segment gets an arrival time", func() bool {
		sent = time.Now().Round(0)
		roundTrip(t, conn, "PING\r\n")
		_, ok := conn.LastArrival()
		return ok
	})
	return sent
}

func checkArrival(t *testing.T, conn *Conn) {
	t.Helper()
	sent := exchange(t, conn)
	back := time.Now().Round(0)
	arrival, ok := conn.LastArrival()
	if !ok || arrival.Before(sent) || arrival.After(back) {
		t.Errorf("arrival %v is not between %v and %v", arrival, sent, back)
	}
	delay, ok := conn.ReadDelay()
	if !ok || delay < 0 || delay > back.Sub(arrival) {
		t.Errorf("delay %v, at most %v", delay, back.Sub(arrival))
	}
}

func TestArrival(t *testing.T) {
	needs.Real(t)
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	checkArrival(t, conn)
}

func TestArrivalBelowTLS(t *testing.T) {
	needs.Real(t)
	a := newAuthority(t)
	target := a.serve(t, forLoopback(), nil)
	target.TLS = &TLSOptions{CACert: a.file}
	conn, _ := dial(t, target)
	checkArrival(t, conn)
}

// TestLateReaderShowsDelay: bytes that are known to lie in the kernel for a while.
func TestLateReaderShowsDelay(t *testing.T) {
	needs.Real(t)
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	exchange(t, conn)
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	waitUntilReadable(t, conn)
	const late = 3 * time.Millisecond
	await.Pass(late)
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if delay, ok := conn.ReadDelay(); !ok || delay < late {
		t.Errorf("delay %v, %v; the bytes lay there for %v", delay, ok, late)
	}
}

func waitUntilReadable(t *testing.T, conn *Conn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "a byte arrives", func() bool {
		queued := 0
		raw.Control(func(fd uintptr) { queued, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err != nil {
			t.Fatal(err)
		}
		return queued > 0
	})
}

// TestArrivalIsForgotten: the end of the stream has no arrival time, so that none is taken for that of another read.
func TestArrivalIsForgotten(t *testing.T) {
	needs.Real(t)
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	exchange(t, conn)
	conn.wire.Conn.(*net.TCPConn).CloseWrite()
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	if at, ok := conn.LastArrival(); ok {
		t.Errorf("at the end of the stream: %v", at)
	}
}

func TestTCPInfo(t *testing.T) {
	needs.Real(t)
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	roundTrip(t, conn, "PING\r\n")
	info, err := conn.TCPInfo()
	if err != nil {
		t.Fatal(err)
	}
	if info.State != "ESTABLISHED" || info.CAState != "Open" || info.RTT <= 0 || info.RTO <= info.RTT ||
		info.SndCwnd == 0 || info.SndMSS == 0 {
		t.Errorf("%+v", info)
	}
	conn.Close()
	if _, err := conn.TCPInfo(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestPeerPID(t *testing.T) {
	needs.Real(t)
	path := filepath.Join(t.TempDir(), "r.sock")
	listen(t, "unix", path, echo)
	conn, _ := dial(t, Target{Network: "unix", Path: path})
	if pid, ok := conn.PeerPID(); !ok || pid != os.Getpid() {
		t.Errorf("%d, %v; this process is %d", pid, ok, os.Getpid())
	}
	conn.Close()
	if _, ok := conn.PeerPID(); ok {
		t.Error("a pid of a closed socket")
	}
}

// TestBacklogFull: a server that hangs stops accepting, and a unix socket then says EAGAIN, not "timeout".
func TestBacklogFull(t *testing.T) {
	needs.Real(t)
	path := filepath.Join(t.TempDir(), "r.sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	target := Target{Network: "unix", Path: path}
	for range 10 {
		conn, _, err := Dial(testContext(t), target)
		if err != nil {
			if !errors.Is(err, ErrBacklog) || !errors.Is(err, syscall.EAGAIN) {
				t.Error(err)
			}
			return
		}
		defer conn.Close()
	}
	t.Error("never full")
}

// BenchmarkRead is what a Read with arrival times costs, against the net package's own; one byte there and back.
func BenchmarkRead(b *testing.B) {
	for _, stamped := range []bool{true, false} {
		name := map[bool]string{true: "recvmsg", false: "net"}[stamped]
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err == nil {
					echo(conn)
				}
			}()
			target, err := Parse(l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			conn, _, err := Dial(b.Context(), target)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			var stream net.Conn = conn
			if !stamped {
				stream = conn.wire.Conn
			}
			buffer := make([]byte, 1)
			b.ReportAllocs()
			for b.Loop() {
				stream.Write(buffer)
				if _, err := stream.Read(buffer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
