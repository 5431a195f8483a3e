package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipe gives the two ends of a connection in memory. Timers that fire at once, which bufconn of gRPC makes two of for
// each connection, crash Go 1.26 where several goroutines of a bubble make them under the race detector (golang/go
// issue 78156): here a deadline that has passed needs none.
func pipe() (one, other net.Conn) {
	a, b := newStream(), newStream()
	return &end{reads: a, writes: b}, &end{reads: b, writes: a}
}

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond
	bytes   []byte
	ended   bool // its writer has closed it
	unread  bool // its reader has closed it
	reader  deadline
	writer  deadline
}

// deadline is that of one end of a stream.
type deadline struct {
	timer  *time.Timer
	passed bool
	number int // of the timer
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.unread:
			return 0, io.ErrClosedPipe
		case s.reader.passed:
			return 0, os.ErrDeadlineExceeded
		case len(s.bytes) > 0:
			n := copy(p, s.bytes)
			s.bytes = append(s.bytes[:0], s.bytes[n:]...)
			s.changed.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended || s.unread:
			return n, io.ErrClosedPipe
		case s.writer.passed:
			return n, os.ErrDeadlineExceeded
		}
		some := min(len(p)-n, bufferBytes-len(s.bytes))
		s.bytes = append(s.bytes, p[n:n+some]...)
		s.changed.Broadcast()
		if n += some; n == len(p) {
			return n, nil
		}
		s.changed.Wait()
	}
}

func (s *stream) set(d *deadline, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.number++
	number, left := d.number, time.Until(at)
	d.passed = !at.IsZero() && left <= 0
	if !at.IsZero() && left > 0 {
		d.timer = time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			d.passed = d.passed || d.number == number
			s.changed.Broadcast()
		})
	}
	s.changed.Broadcast()
}

func (s *stream) close(flag *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*flag = true
	for _, d := range []*deadline{&s.reader, &s.writer} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	s.changed.Broadcast()
}

// end is one end of a connection.
type end struct{ reads, writes *stream }

// Read implements net.Conn.
func (e *end) Read(p []byte) (int, error) { return e.reads.read(p) }

// Write implements net.Conn.
func (e *end) Write(p []byte) (int, error) { return e.writes.write(p) }

// Close implements net.Conn.
func (e *end) Close() error {
	e.reads.close(&e.reads.unread)
	e.writes.close(&e.writes.ended)
	return nil
}

// SetDeadline implements net.Conn.
func (e *end) SetDeadline(t time.Time) error {
	e.reads.set(&e.reads.reader, t)
	e.writes.set(&e.writes.writer, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (e *end) SetReadDeadline(t time.Time) error { e.reads.set(&e.reads.reader, t); return nil }

// SetWriteDeadline implements net.Conn.
func (e *end) SetWriteDeadline(t time.Time) error { e.writes.set(&e.writes.writer, t); return nil }

// LocalAddr implements net.Conn.
func (*end) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (*end) RemoteAddr() net.Addr { return address{} }

// address is that of all ends.
type address struct{}

// Network implements net.Addr.
func (address) Network() string { return "memory" }

// String implements net.Addr.
func (address) String() string { return "memory" }

// listener hands on what is dialled.
type listener struct {
	dialled chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialled:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// Addr implements net.Listener.
func (*listener) Addr() net.Addr { return address{} }
