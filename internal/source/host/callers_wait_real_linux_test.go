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

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// asks starts a process that sends a line to a listener and then only reads; it gives the connection's other end.
func asks(t *testing.T, l *net.TCPListener) *net.TCPConn {
	t.Helper()
	c := exec.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; echo PING >&3; exec cat <&3",
		l.Addr().(*net.TCPAddr).Port))
	if err := c.Start(); err != nil {
		t.Fatal(err)
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
	needs.Real(t, needs.Command("bash", "bash"))
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
	await.Until(t, "a wait is seen", func() bool { v, _ := last(waiting); return v >= float64(minRecordedWait) })
	if _, err := waiting.Write([]byte("+PONG\n")); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "its end is seen", func() bool { v, any := last(waiting); return any && v == 0 })
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
