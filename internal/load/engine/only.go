//go:build linux

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// A worker with a single connection and no schedule sleeps in the read itself: that spares a system call per read, and
// most of the time to wake up. Reads and writes elsewhere have MSG_DONTWAIT, so that a socket which waits is as good
// there as one that does not.

// longestSleep is how late such a worker looks whether it shall stop, or what else there is to do.
const longestSleep = 50 * time.Millisecond

// only gives the connection in whose read the worker may sleep: a reply is to come there, and nothing is to happen
// elsewhere.
func (w *worker) only() *conn {
	one := w.index+w.r.Threads >= w.r.Connections // seats are dealt out in turns
	if !one || len(w.conns) != 1 || w.arrivals != nil || w.player != nil || w.routing != nil || w.r.BusyPoll {
		return nil
	}
	c := w.conns[0]
	if c == nil || c.dead || c.away || c.full || c.secure != nil || c.count == 0 {
		return nil
	}
	if !c.asleep {
		wait := unix.NsecToTimeval(int64(longestSleep))
		if unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait) != nil || unix.SetNonblock(c.fd,
			false) != nil {
			return nil
		}
		c.asleep = true
	}
	return c
}

// receiveAsleep waits for replies and takes them.
func (w *worker) receiveAsleep(c *conn) {
	before := w.now
	w.receivePlain(c, 0)
	if w.now == before { // nothing came
		w.now = w.r.Clock.Now()
	}
}
