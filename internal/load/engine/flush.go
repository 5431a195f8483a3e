//go:build linux

package engine

import "golang.org/x/sys/unix"

// flush writes the requests of a connection.
func (w *worker) flush(c *conn) {
	if c.secure != nil {
		w.flushSecure(c)
		return
	}
	if len(c.out) == 0 || c.full || c.dead {
		return
	}
	c.out = w.writeTo(c, c.out)
	if len(c.out) == 0 && c.routed == nil {
		w.drafts = append(w.drafts, c.out)
		c.out = nil
	}
}

// draft is the buffer to which the next requests of a connection are appended. Connections share these buffers, the
// last used first, so that they stay in the CPU caches.
func (w *worker) draft(c *conn) []byte {
	n := len(w.drafts) - 1
	if c.out != nil || n < 0 {
		return c.out
	}
	b := w.drafts[n]
	w.drafts = w.drafts[:n]
	return b
}

// writeTo writes to a socket and gives the rest that it did not take.
func (w *worker) writeTo(c *conn, out []byte) []byte {
	w.tally.Writes++
	n, errno := write(c.fd, out)
	switch {
	case errno == unix.EAGAIN:
		c.full = true
		return out
	case errno != 0:
		w.lost(c, errno)
		return out[:0]
	}
	w.tally.BytesOut += int64(n)
	if n < len(out) {
		c.full = true
	}
	return out[:copy(out, out[n:])]
}
