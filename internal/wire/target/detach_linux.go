package target

import (
	"net"

	"golang.org/x/sys/unix"
)

// Detach takes the socket out of the Go runtime's poller and returns its descriptor, non-blocking, for the caller to
// close; c cannot be used any more. It is for a program with its own event loop: else each event would wake the
// runtime, too. Arrival times are no longer requested.
//
// With TLS, over makes the net.Conn that the stream uses from then on, and secure is the stream; without TLS secure is
// nil and over is not called. A read that would block must return a net.Error that is Temporary: crypto/tls returns it
// and can continue. An error of a write ends the stream, so over must buffer what the socket does not take.
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
