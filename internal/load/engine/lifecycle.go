//go:build linux

package engine

import (
	"math"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// Connections that are opened for each call (PerCall), after a number of calls (ReconnectEvery), or after the start of
// the load (ColdStart).

// quota is how many calls a connection carries. With ReconnectEvery it is random, 50 to 150 % of that, so that
// connections that were opened together do not close together.
func (r *run) quota() int64 {
	switch {
	case r.PerCall:
		return 1
	case r.ReconnectEvery > 0:
		n := int64(r.ReconnectEvery)
		return n - n/2 + rand.Int64N(n/2*2+1)
	}
	return math.MaxInt64
}

// NewTally is an empty tally of this load.
func (o *Options) NewTally() *Tally { return NewTally(len(o.Ops()), o.TwoTimes()) }

// connCount is the number of this worker's connections.
func (w *worker) connCount() int {
	n := w.r.Connections / w.r.Threads
	if w.index < w.r.Connections%w.r.Threads {
		n++
	}
	return n
}

// addUnconnected adds the connections of a load that opens them after its start.
func (w *worker) addUnconnected() {
	for index := range w.connCount() {
		if w.r.PerCall {
			w.conns = append(w.conns, nil)
			w.resetUnconnected(index)
			w.connReady(w.conns[index])
		} else {
			w.conns = append(w.conns, &conn{dead: true, index: index})
			w.dialAfter(0, dialed{index: index, due: w.r.start})
		}
	}
}

// dialAndSend begins a call for which a connection is opened.
func (w *worker) dialAndSend(c *conn, intended int64) {
	w.countBegun()
	c.push(intended, w.now, workload.Request{})
	w.dialAfter(0, dialed{index: c.index, due: intended, forCall: true})
}

// retire closes a connection that has carried its calls, and opens another: for the next call, or at once.
func (w *worker) retire(c *conn) {
	c.dead = true
	if c.secure != nil {
		_ = c.secure.Close() // sends close_notify, into wire.out
		_, _ = write(c.fd, c.secure.wire.out)
	}
	unix.Close(c.fd)
	w.tally.Retired++
	if w.r.PerCall {
		w.resetUnconnected(c.index)
		w.connReady(w.conns[c.index])
		return
	}
	if w.remaining != 0 {
		w.dialAfter(0, dialed{index: c.index, due: w.now})
	}
}

// resetUnconnected replaces a connection by one that is opened with the next call.
func (w *worker) resetUnconnected(index int) {
	c := newConn(-1, 1)
	c.index, c.unconnected, c.quota = index, true, 1
	w.conns[index] = c
	w.connected[index] = false // the next one does not count as reconnected
}

// pauseConn makes a connection of such a load ready after a pause, as after a lost connection.
func (w *worker) pauseConn(c *conn) {
	pause := pauseAfter(c.attempts)
	w.r.dials.Go(func() {
		if w.r.pause(pause) {
			w.deliver(dialed{index: c.index, fd: -1, pauseEnded: true})
		}
	})
}
