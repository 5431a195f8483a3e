//go:build linux

package engine

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Options.Timeout: as client libraries do, a call that waits for longer has failed, and its connection is closed with
// all that is on it, since a reply that came later would be taken for that of the next call.

// sweepPart is how much later than Timeout a call is given up at most: a 16th of it, or sweepLeast.
const (
	sweepPart  = 16
	sweepLeast = time.Millisecond
)

// nextSweep is when connections are to be looked through for calls that wait for too long.
func (w *worker) nextSweep() int64 {
	if w.r.Timeout == 0 {
		return math.MaxInt64
	}
	return w.now + int64(max(w.r.Timeout/sweepPart, sweepLeast))
}

func (w *worker) sweep() {
	w.sweepAt = w.nextSweep()
	limit := w.now - int64(w.r.Timeout)
	for _, c := range w.conns {
		if !c.dead && !c.away && c.count > 0 && c.first().sent <= limit {
			w.giveUp(c, c.sentBefore(limit))
		}
	}
}

// sentBefore counts the calls in flight that were sent at or before a moment; they are in the order of their sending.
func (c *conn) sentBefore(limit int64) (n int) {
	for n < c.count && c.flights[(c.head+n)&(len(c.flights)-1)].sent <= limit {
		n++
	}
	return n
}

// giveUp closes a connection whose first n calls waited for too long. The others on it fail with it.
func (w *worker) giveUp(c *conn, n int) {
	w.tally.TimedOut += int64(n)
	w.failed(int64(n), kindTimeout)
	w.failed(int64(c.count-n), kindAfterTimeout)
	w.inFlight -= int64(c.count)
	if c.link != nil {
		w.routing.under[c.link.client] -= int32(c.count)
	}
	c.count = 0
	w.lost(c, errTimeout)
}

// failed counts calls that will have no reply.
func (w *worker) failed(n int64, kind string) {
	if n > 0 {
		w.tally.Failed += n
		countKind(w.tally.Errors, kind, n)
	}
}

// lost gives up a connection and the calls that were on it, and sees to another. Of one that is given up it may tell
// again: its end can come with the reply after which it was closed.
func (w *worker) lost(c *conn, err error) {
	if c.dead {
		return
	}
	kind := errorKind(err)
	c.dead = true
	unix.Close(c.fd)
	w.tally.Lost++
	if c.count == 0 && err != errTimeout { // else the calls tell of it
		countKind(w.tally.ConnErrors, kind, 1)
	}
	w.inFlight -= int64(c.count)
	w.failed(int64(c.count), kind)
	if c.link != nil {
		w.part(c, c.count)
		return
	}
	c.count = 0
	if !w.r.PerCall {
		w.redial(c.index, 0)
		return
	}
	w.vacate(c.index)
	w.rest(w.conns[c.index])
}
