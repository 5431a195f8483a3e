//go:build linux

package engine

import (
	"bytes"
	"context"
	"slices"

	"slowpath/internal/wire/target"
)

// This file opens and closes the connections of a routed load, as nodes come and go.

// connectRouted opens the connections of all clients to all nodes, some at a time. A master that cannot be reached is
// an error; a replica is not.
func (r *run) connectRouted(ctx context.Context) (err error) {
	wake := func() {
		for _, w := range r.workers {
			w.wakeUp()
		}
	}
	if r.router, err = newRouter(ctx, &r.Options, wake); err != nil {
		return err
	}
	r.dials.Go(func() { r.router.run(r.dialing) })
	now := r.router.current.Load()
	for _, w := range r.workers {
		w.routing = w.newRouting(w.connCount())
		for _, number := range now.members {
			n := w.node(number)
			for client := range int32(w.routing.clients) {
				n.dialing[client] = true
			}
		}
	}
	var specs []connSpec
	for i := range r.Connections {
		for _, number := range now.members {
			w, client := r.workers[i%len(r.workers)], int32(i/len(r.workers))
			specs = append(specs, connSpec{
				to: r.router.node(number), worker: w, index: w.routing.connIndex(number, client),
				optional: !slices.Contains(now.all, number),
			})
		}
	}
	return r.openConns(ctx, specs)
}

// targetOf is the target of a connection; any goroutine may call it.
func (w *worker) targetOf(index int) target.Target {
	if w.routing == nil {
		return w.r.Target
	}
	number, _ := w.routing.nodeAndClient(index)
	return w.r.router.node(number)
}

// beginRouted takes over the first connections and draws the first calls.
func (w *worker) beginRouted() {
	w.admit()
	if w.arrivals == nil {
		for client := range int32(w.routing.clients) {
			w.refill(&conn{routed: &routedConn{client: client}}, 0)
		}
	}
	w.dispatchRouted()
}

// joinNode adds a new connection to its node, and sends the calls that waited for it.
func (w *worker) joinNode(c *conn) {
	x := w.routing
	number, client := x.nodeAndClient(c.index)
	c.routed = &routedConn{node: number, client: client, calls: make([]routed, len(c.inflight))}
	n := w.node(number)
	n.dialing[client] = false
	n.connected++
	if w.arrivals != nil {
		for range w.r.Pipeline {
			w.release(c)
		}
		return
	}
	for q := &n.waiting[client]; q.n > 0; {
		x.waiting--
		k, request := q.take()
		w.enqueue(c, k, request)
	}
}

// leaveNode removes a lost connection from its node. Its calls have no reply, and others may be drawn for them.
func (w *worker) leaveNode(c *conn, calls int) {
	x, l := w.routing, c.routed
	c.count = 0
	x.nodes[l.node].connected--
	w.r.router.markStale() // the node may have failed
	w.connectClient(l.node, l.client, 0)
	if w.arrivals == nil {
		w.refill(c, calls)
	}
}

// routedDialFailed tries again to open a connection.
func (w *worker) routedDialFailed(index, attempts int) {
	number, client := w.routing.nodeAndClient(index)
	w.node(number).dialing[client] = false
	w.r.router.markStale()
	w.connectClient(number, client, attempts)
}

// connectClient connects a client to a node, unless the node left the routes and no call waits there.
func (w *worker) connectClient(number int16, client int32, attempts int) {
	n := w.node(number)
	_, member := slices.BinarySearch(w.routing.routes.members, number)
	if n.dialing[client] || !member && w.waitingAt(n, client).n == 0 {
		return
	}
	n.dialing[client] = true
	w.redial(w.routing.connIndex(number, client), attempts)
}

// connectNode connects the clients that have no connection to a node.
func (w *worker) connectNode(number int16) {
	w.node(number)
	for client := range int32(w.routing.clients) {
		if w.conns[w.routing.connIndex(number, client)].dead {
			w.connectClient(number, client, 0)
		}
	}
}

// reroute follows new routes: it connects to new nodes, and distributes waiting calls again.
func (w *worker) reroute() {
	x := w.routing
	for _, number := range x.routes.members {
		w.connectNode(number)
	}
	if x.waiting == 0 {
		return
	}
	var queues []waiting
	for _, q := range x.queues() {
		if q.n > 0 {
			queues = append(queues, *q)
			*q = waiting{}
		}
	}
	for i := range queues {
		for q := &queues[i]; q.n > 0; {
			x.waiting--
			k, request := q.take()
			if !k.asking { // ASK names a node that the routes do not know
				k.node = none
			}
			w.place(k, request)
		}
	}
}

// countUnsentRouted counts the calls that wait for a connection and were never sent.
func (w *worker) countUnsentRouted() {
	x := w.routing
	for _, q := range x.queues() {
		for n := q.n; n > 0; n-- {
			x.waiting--
			k, request := q.take()
			if k.tries > 0 {
				x.waiting++
				q.put(k, bytes.Clone(request))
				continue
			}
			w.inFlight--
			w.tally.Begun--
			w.unsent++
			if w.r.TwoTimes() {
				w.tally.age(&w.tally.AgeFromIntended, w.ended-k.intended)
			} else {
				w.tally.age(&w.tally.AgeFromSend, w.ended-k.intended)
			}
		}
	}
}

// countUnansweredRouted counts the calls that wait to be sent again.
func (w *worker) countUnansweredRouted() {
	for _, q := range w.routing.queues() {
		for i := range q.n {
			w.countUnanswered(-1, &q.calls[(q.head+i)&(len(q.calls)-1)].inflightCall)
		}
	}
	for i := range w.routing.retries {
		w.countUnanswered(-1, &w.routing.retries[i].call.inflightCall)
	}
}

// queues are all queues of calls that wait for a connection.
func (x *routing) queues() []*waiting {
	list := []*waiting{&x.noNode}
	for _, n := range x.nodes {
		for i := range n.waiting {
			list = append(list, &n.waiting[i])
		}
	}
	return list
}

// countPerNode counts the replies of each node.
func (w *worker) countPerNode() {
	x := w.routing
	if !w.tally.Last {
		w.tally.Unsent = int64(x.waiting)
	}
	for number, n := range x.nodes {
		if n.calls > 0 {
			w.tally.Nodes[w.r.router.node(int16(number)).Addr()] += n.calls
			n.calls = 0
		}
	}
}
