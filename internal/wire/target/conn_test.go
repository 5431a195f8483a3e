package target

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestReadDeadlineAndClose(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	conn.SetReadDeadline(time.Now().Add(-time.Second))
	var netError net.Error
	_, err := conn.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &netError) || !netError.Timeout() {
		t.Fatalf("past deadline: %v", err)
	}
	conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // one that passes while Read waits
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("deadline: %v", err)
	}
	conn.SetReadDeadline(time.Time{})
	roundTrip(t, conn, "still usable")
	if n, err := conn.Read(nil); n != 0 || err != nil {
		t.Errorf("empty read: %d, %v", n, err)
	}
	ended := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	conn.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed under Read: %v", err)
	}
}

func TestReadEOFAndReset(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) { io.WriteString(conn, "bye") })
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	if got, err := io.ReadAll(conn); string(got) != "bye" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	l = listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		conn.Read(make([]byte, 1)) // else the reset may come before Dial is done
		conn.(*net.TCPConn).SetLinger(0)
	})
	conn, _ = dial(t, parsed(t, l.Addr().String()))
	io.WriteString(conn, "x")
	var op *net.OpError
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &op) || op.Op != "read" {
		t.Errorf("reset: %v", err)
	}
}

// LastArrival is the arrival time from which ReadDelay counts.
func (c *Conn) LastArrival() (wall time.Time, ok bool) {
	ns := c.wire.arrival.Load()
	if ns == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, ns), true
}

// ConnectionState is what TLS negotiated; false on a plain stream.
func (c *Conn) ConnectionState() (tls.ConnectionState, bool) {
	stream, ok := c.Conn.(*tls.Conn)
	if !ok {
		return tls.ConnectionState{}, false
	}
	return stream.ConnectionState(), true
}
