//go:build linux

package engine

import "container/heap"

// release gives room on a connection of an open loop to who waits for it.
func (w *worker) release(c *conn) {
	if c.dead {
		return
	}
	n := w.routing.nodes[c.link.node]
	if q := &n.waiting[0]; q.n > 0 {
		w.routing.waiting--
		k, request := q.take()
		w.enqueue(c, k, request)
		return
	}
	n.idle.put(c)
}

// dispatchRouted draws what has become due, sends again what has paused, and writes all of it.
func (w *worker) dispatchRouted() {
	x := w.routing
	if now := w.r.router.current.Load(); now != x.routes {
		x.routes = now
		w.reroute()
	}
	for len(x.later) > 0 && x.later[0].at <= w.now {
		p := heap.Pop(&x.later).(paused)
		w.place(p.call, p.request)
	}
	if w.arrivals != nil {
		for w.more && w.due <= w.now && w.left != 0 && x.waiting < mostWaiting {
			waited := x.waiting
			w.draw(0, w.due, 0)
			if x.waiting == waited {
				_ = w.tally.Late.RecordValue(min(w.now-w.due, longest)) // in range
			}
			w.advance()
		}
	}
	w.flushDirty()
}

func (w *worker) flushDirty() {
	x := w.routing
	for i := 0; i < len(x.dirty); i++ { // one that is lost may add others
		c := x.dirty[i]
		c.link.dirty = false
		w.flush(c)
	}
	x.dirty = x.dirty[:0]
}

// nextRouted is when a routed worker has something to do though nothing comes, at the latest until.
func (w *worker) nextRouted(until int64) int64 {
	x := w.routing
	if len(x.later) > 0 {
		until = min(until, x.later[0].at)
	}
	if w.arrivals != nil && w.more && x.waiting < mostWaiting {
		until = min(until, w.due)
	}
	return until
}
