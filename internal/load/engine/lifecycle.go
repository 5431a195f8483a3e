//go:build linux

package engine

import (
	"math"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// What happens to connections by plan: opened for each call, after so many calls, or in the course of the load.

// quota is how many calls a connection carries. With ReconnectEvery it is random between half of that and one and a
// half, so that connections that were opened together do not end together.
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

// seats is how many of the connections are this worker's.
func (w *worker) seats() int {
	n := w.r.Connections / w.r.Threads
	if w.index < w.r.Connections%w.r.Threads {
		n++
	}
	return n
}

// sit makes the seats of a load whose connections are opened in its course.
func (w *worker) sit() {
	for seat := range w.seats() {
		if w.r.PerCall {
			w.conns = append(w.conns, nil)
			w.vacate(seat)
			w.free(w.conns[seat])
		} else {
			w.conns = append(w.conns, &conn{dead: true, index: seat})
			w.dialAfter(0, dialed{seat: seat, due: w.r.start})
		}
	}
}

// depart begins a call on a seat that connects for each.
func (w *worker) depart(c *conn, intended int64) {
	w.begun()
	c.push(intended, w.now, workload.Request{})
	w.dialAfter(0, dialed{seat: c.index, due: intended, call: true})
}

// retire closes a connection that has carried its calls, and opens another: for the next call, or at once.
func (w *worker) retire(c *conn) {
	c.dead = true
	if c.secure != nil {
		_ = c.secure.Close() // says so to the server; what it writes is kept by the wire
		_, _ = write(c.fd, c.secure.wire.out)
	}
	unix.Close(c.fd)
	w.tally.Retired++
	if w.r.PerCall {
		w.vacate(c.index)
		w.free(w.conns[c.index])
		return
	}
	if w.left != 0 {
		w.dialAfter(0, dialed{seat: c.index, due: w.now})
	}
}

// vacate leaves a seat without connection, for a load that connects for each call.
func (w *worker) vacate(seat int) {
	c := newConn(-1, 1)
	c.index, c.away, c.quota = seat, true, 1
	w.conns[seat] = c
	w.connected[seat] = false // the next connection of the seat is not one that came back
}

// rest frees a seat of such a load after a pause, as that after a lost connection.
func (w *worker) rest(c *conn) {
	pause := pauseAfter(c.attempts)
	w.r.dials.Go(func() {
		if w.r.pause(pause) {
			w.deliver(dialed{seat: c.index, fd: -1, rested: true})
		}
	})
}
