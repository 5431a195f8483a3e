package target

import (
	"golang.org/x/sys/unix"
)

// Detach takes the socket out of the Go runtime's poller and gives its descriptor, non-blocking and the caller's to close; c cannot be used any
// more. It is for a program with an event loop of its own: the runtime would be woken by each event too. Arrival times are no longer asked
// for. A stream under TLS cannot be detached: the error is ErrNotSupported.
func (c *Conn) Detach() (fd int, err error) {
	if c.secure() {
		return -1, newError(c.target, ErrNotSupported, "TLS without its stream", "", ErrNotSupported)
	}
	fd = -1
	controlErr := c.wire.raw.Control(func(s uintptr) {
		_ = unix.SetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 0)
		fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = controlErr
	}
	if err != nil {
		return -1, newError(c.target, nil, "dup: "+err.Error(), "", err)
	}
	c.Close() // of this descriptor only; the poller forgets it
	return fd, nil
}
