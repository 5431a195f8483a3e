//go:build linux

package engine

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Options.Timeout works as in client libraries: a call that waits for longer fails, and its connection is closed with
// all its calls, since a late reply would be taken for that of the next call.

// A call fails at most a timeoutCheckPart-th of Timeout too late, or minTimeoutCheck.
const (
	timeoutCheckPart = 16
	minTimeoutCheck  = time.Millisecond
)

// nextTimeoutCheck is when connections are checked for timeouts.
func (w *worker) nextTimeoutCheck() int64 {
	if w.r.Timeout == 0 {
		return math.MaxInt64
	}
	return w.now + int64(max(w.r.Timeout/timeoutCheckPart, minTimeoutCheck))
}

func (w *worker) checkTimeouts() {
	w.checkTimeoutsAt = w.nextTimeoutCheck()
	limit := w.now - int64(w.r.Timeout)
	for _, c := range w.conns {
		if !c.dead && !c.unconnected && c.count > 0 && c.first().sent <= limit {
			w.failTimedOut(c, c.sentBefore(limit))
		}
	}
}

// sentBefore counts the calls in flight that were sent until limit; they are in the order in which they were sent.
func (c *conn) sentBefore(limit int64) (n int) {
	for n < c.count && c.inflight[(c.head+n)&(len(c.inflight)-1)].sent <= limit {
		n++
	}
	return n
}

// failTimedOut closes a connection whose first n calls timed out. The others on it fail as well.
func (w *worker) failTimedOut(c *conn, n int) {
	w.tally.TimedOut += int64(n)
	w.failed(int64(n), kindTimeout)
	w.failed(int64(c.count-n), kindAfterTimeout)
	w.inFlight -= int64(c.count)
	if c.routed != nil {
		w.routing.inFlight[c.routed.client] -= int32(c.count)
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

// lost gives up a connection with its calls, and opens another. It may be called again for the same connection: its end
// can come with the reply after which it was closed.
func (w *worker) lost(c *conn, err error) {
	if c.dead {
		return
	}
	kind := errorKind(err)
	c.dead = true
	unix.Close(c.fd)
	w.tally.Lost++
	if c.count == 0 && err != errTimeout { // else the calls count it
		countKind(w.tally.ConnErrors, kind, 1)
	}
	w.inFlight -= int64(c.count)
	w.failed(int64(c.count), kind)
	if c.routed != nil {
		w.leaveNode(c, c.count)
		return
	}
	c.count = 0
	if !w.r.PerCall {
		w.redial(c.index, 0)
		return
	}
	w.resetUnconnected(c.index)
	w.pauseConn(w.conns[c.index])
}
