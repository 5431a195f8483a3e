package host

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// asks starts a process that sends a line to a listener and then only reads; it gives the connection's other end.
func asks(t *testing.T, l *net.TCPListener) *net.TCPConn {
	t.Helper()
	c := exec.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; echo PING >&3; exec cat <&3",
		l.Addr().(*net.TCPAddr).Port))
	if err := c.Start(); err != nil {
		t.Skipf("a process that calls is made with bash: %v", err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if err := l.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	conn, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "PING\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return conn
}

// TestWatchCallers: a connection that sent and received no answer is recorded, with its process, until it does; one
// that was answered is not.
func TestWatchCallers(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	waiting, served := asks(t, l), asks(t, l)
	if _, err := served.Write([]byte("+PONG\n")); err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	node := l.Addr().(*net.TCPAddr).AddrPort()
	go func() {
		done <- WatchCallers(ctx, CallersOptions{
			Clock: clock.New(), Sink: m,
			Nodes: map[netip.AddrPort]string{node: "server"}, Every: 50 * time.Millisecond,
		})
	}()
	last := func(c net.Conn) (value float64, any bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, s := range m.samples {
			if s.Subject == recording.ConnPrefix+c.RemoteAddr().String() && s.Name == "waiting_ns" {
				value, any = s.Value, true
			}
		}
		return value, any
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				cancel()
				t.Fatalf("%s: not seen; the watch: %v", what, <-done)
			}
		}
	}
	until("a wait", func() bool { v, _ := last(waiting); return v >= float64(minRecordedWait) })
	if _, err := waiting.Write([]byte("+PONG\n")); err != nil {
		t.Fatal(err)
	}
	until("its end", func() bool { v, any := last(waiting); return any && v == 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, any := last(served); any {
		t.Error("a connection that was answered is said to wait")
	}
	for _, s := range m.snapshots {
		if s.Name == recording.SnapshotPendingCaller &&
			s.Subject == recording.ConnPrefix+waiting.RemoteAddr().String() {
			return
		}
	}
	t.Errorf("who waits is not recorded: %+v", m.snapshots)
}

func TestWaitNs(t *testing.T) {
	const ms = int64(1e6)
	for name, tt := range map[string]struct {
		s    Socket
		want int64
	}{
		"waits": {Socket{
			HasInfo: true, DataSegsOut: 3, SentAgoNs: 900 * ms, ReceivedAgoNs: 5000 * ms,
			RTONs: 200 * ms,
		}, 900 * ms},
		"answered": {
			Socket{HasInfo: true, DataSegsOut: 3, SentAgoNs: 900 * ms, ReceivedAgoNs: 899 * ms},
			0,
		},
		"never used": {Socket{HasInfo: true, SentAgoNs: 900 * ms, ReceivedAgoNs: 1 << 40}, 0},
		"the first request": {Socket{
			HasInfo: true, DataSegsOut: 1, SentAgoNs: 900 * ms, ReceivedAgoNs: 900 * ms,
			AckedAgoNs: 900 * ms,
		}, 900 * ms},
		"within a tick": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 900 * ms,
		}, 0},
		"acknowledged alone": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 8, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 860 * ms,
		}, 900 * ms},
		"the reply comes twice": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 892 * ms,
		}, 0},
		"twice, from afar": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 852 * ms, RTTNs: 20 * ms,
		}, 0},
		"twice, by the timer": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 696 * ms,
		}, 0},
		"kept alive": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 90000 * ms,
			ReceivedAgoNs: 90000 * ms, AckedAgoNs: 60000 * ms,
		}, 0},
		"not acknowledged": {Socket{HasInfo: true, DataSegsOut: 9, DataSegsIn: 8, Unacked: 1, SentAgoNs: 900 *
			ms, ReceivedAgoNs: 900 * ms, AckedAgoNs: 900 * ms}, 900 * ms},
		"retransmitted three times": {Socket{
			HasInfo: true, DataSegsOut: 4, SentAgoNs: 100 * ms, ReceivedAgoNs: 9000 * ms,
			RTONs: 1600 * ms, Backoff: 3,
		}, 1500 * ms},
		"from a table without it": {Socket{}, 0},
	} {
		if got := tt.s.waitNs(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
