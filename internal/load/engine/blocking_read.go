//go:build linux

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// A worker with a single connection and no schedule sleeps in the read itself: that saves a system call per read, and
// most of the time to wake up. All other reads and writes have MSG_DONTWAIT, so that they work on a blocking socket,
// too.

// maxBlockingRead is how late such a worker notices that it shall stop, or has something else to do.
const maxBlockingRead = 50 * time.Millisecond

// blockingConn gives the connection in whose read the worker may sleep: it waits for a reply there, and for nothing
// else.
func (w *worker) blockingConn() *conn {
	one := w.index+w.r.Threads >= w.r.Connections // connections are distributed in turn
	if !one || len(w.conns) != 1 || w.arrivals != nil || w.replayer != nil || w.routing != nil || w.r.BusyPoll {
		return nil
	}
	c := w.conns[0]
	if c == nil || c.dead || c.unconnected || c.full || c.secure != nil || c.count == 0 {
		return nil
	}
	if !c.blocking {
		wait := unix.NsecToTimeval(int64(maxBlockingRead))
		if unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait) != nil || unix.SetNonblock(c.fd,
			false) != nil {
			return nil
		}
		c.blocking = true
	}
	return c
}

// receiveBlocking waits for replies and counts them.
func (w *worker) receiveBlocking(c *conn) {
	before := w.now
	w.receivePlain(c, 0)
	if w.now == before { // nothing came
		w.now = w.r.Clock.Now()
	}
}
