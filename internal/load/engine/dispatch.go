//go:build linux

package engine

import "container/heap"

// release uses the room on a connection of an open loop for the next call that waits for it.
func (w *worker) release(c *conn) {
	if c.dead {
		return
	}
	n := w.routing.nodes[c.routed.node]
	if q := &n.waiting[0]; q.n > 0 {
		w.routing.waiting--
		k, request := q.take()
		w.enqueue(c, k, request)
		return
	}
	n.idle.put(c)
}

// dispatchRouted draws the calls that have become due, retries those whose pause has ended, and writes all of them.
func (w *worker) dispatchRouted() {
	x := w.routing
	if now := w.r.router.current.Load(); now != x.routes {
		x.routes = now
		w.reroute()
	}
	for len(x.retries) > 0 && x.retries[0].at <= w.now {
		p := heap.Pop(&x.retries).(delayedCall)
		w.place(p.call, p.request)
	}
	if w.arrivals != nil {
		for w.hasDue && w.due <= w.now && w.remaining != 0 && x.waiting < maxWaiting {
			waited := x.waiting
			w.draw(0, w.due, 0)
			if x.waiting == waited {
				_ = w.tally.Late.RecordValue(min(w.now-w.due, maxLatency)) // in range
			}
			w.advance()
		}
	}
	w.flushDirty()
}

func (w *worker) flushDirty() {
	x := w.routing
	for i := 0; i < len(x.dirty); i++ { // a lost connection may add others
		c := x.dirty[i]
		c.routed.dirty = false
		w.flush(c)
	}
	x.dirty = x.dirty[:0]
}

// nextRouted is when a routed worker has something to do without an event, at the latest until.
func (w *worker) nextRouted(until int64) int64 {
	x := w.routing
	if len(x.retries) > 0 {
		until = min(until, x.retries[0].at)
	}
	if w.arrivals != nil && w.hasDue && x.waiting < maxWaiting {
		until = min(until, w.due)
	}
	return until
}
