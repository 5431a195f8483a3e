package target

import (
	"net"

	"golang.org/x/sys/unix"
)

// Detach takes the socket out of the Go runtime's poller and gives its descriptor, non-blocking and the caller's to
// close; c cannot be used any more. It is for a program with an event loop of its own: the runtime would be woken by
// each event too. Arrival times are no longer asked for.
//
// Under TLS over makes of the descriptor what the stream reads and writes from then on, and secure is the stream; of a
// plain one it is nil and over is not called. A read that would block returns a net.Error that is Temporary, which
// crypto/tls passes on and goes on after; an error of a write ends the stream, so that what the socket does not take
// has to be kept.
func (c *Conn) Detach(over func(fd int) net.Conn) (fd int, secure net.Conn, err error) {
	fd = -1
	controlErr := c.wire.raw.Control(func(s uintptr) {
		_ = unix.SetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 0)
		fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = controlErr
	}
	if err != nil {
		return -1, nil, newError(c.target, nil, "dup: "+err.Error(), "", err)
	}
	c.wire.Close() // of this descriptor only; the poller forgets it
	if c.seam != nil {
		c.seam.Conn = over(fd)
		secure = c.Conn
	}
	return fd, secure, nil
}
