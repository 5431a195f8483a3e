//go:build linux

package engine

import (
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// secure is TLS on a connection of a worker, in the worker's thread: crypto/tls over a wire that never blocks.
type secure struct {
	net.Conn // of crypto/tls
	wire     *wire
}

// wire is a non-blocking socket as a net.Conn for crypto/tls. A read that would block is a temporary error, after which
// crypto/tls continues. crypto/tls keeps an error of a write for good, so a write only buffers, and the worker sends.
type wire struct {
	fd    int
	out   []byte // encrypted, to be sent
	empty bool   // a read was short: the socket is empty until epoll reports it
	end   bool   // epoll reported the end of the stream: it is to be read, too
	reads int64  // system calls since the worker counted them
	bytes int64  // read since the worker counted them
}

func newWire(fd int) *wire { return &wire{fd: fd} }

// wouldBlock is a temporary net.Error, which crypto/tls does not keep.
type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

func (w *wire) Read(p []byte) (int, error) {
	for !w.empty {
		w.reads++
		n, errno := read(w.fd, p, unix.MSG_DONTWAIT)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			w.empty = true
		case errno != 0:
			return 0, errno
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			w.empty = n < len(p) && !w.end
			w.bytes += int64(n)
			return n, nil
		}
	}
	return 0, wouldBlock{}
}

func (w *wire) Write(p []byte) (int, error) {
	w.out = append(w.out, p...)
	return len(p), nil
}

// The rest of net.Conn: crypto/tls calls it when it closes.
func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// flushSecure is flush under TLS. It encrypts more only after the socket took what is encrypted.
func (w *worker) flushSecure(c *conn) {
	s := c.secure
	if c.dead || c.full {
		return
	}
	if len(c.out) > 0 {
		_, err := s.Write(c.out)
		c.out = c.out[:0]
		if err != nil {
			w.lost(c, err)
			return
		}
	}
	if len(s.wire.out) > 0 {
		s.wire.out = w.writeTo(c, s.wire.out)
	}
}

// receiveSecure is receive under TLS: it decrypts all records, up to a full buffer, before it scans them, so that there
// is one time stamp and one write for all of them.
func (w *worker) receiveSecure(c *conn) {
	wire := c.secure.wire
	wire.empty, wire.end = false, c.ending
	for turn := 0; !c.dead; turn++ {
		if turn == maxReads {
			w.receiveLater(c)
			return
		}
		b, err := w.decrypt(c)
		w.tally.Reads += wire.reads
		w.tally.BytesIn += wire.bytes
		wire.reads, wire.bytes = 0, 0
		if len(b) > len(c.carry) {
			w.now = w.r.Clock.Now()
			if err := w.replies(c, b); err != nil {
				w.lost(c, err)
				return
			}
		}
		if err != nil && err != (wouldBlock{}) {
			w.lost(c, err)
			return
		}
		w.flush(c)
		if err != nil {
			return
		}
	}
}

// decrypt gives the carry of a connection and all bytes after it, until there are no more or the buffer is full.
func (w *worker) decrypt(c *conn) (b []byte, err error) {
	n := copy(w.buf, c.carry)
	if n == len(w.buf) {
		w.buf = append(w.buf, make([]byte, len(w.buf))...)
	}
	for n < len(w.buf) && err == nil {
		var more int
		more, err = c.secure.Read(w.buf[n:])
		n += more
	}
	return w.buf[:n], err
}
