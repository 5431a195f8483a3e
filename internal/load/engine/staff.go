//go:build linux

package engine

import (
	"bytes"
	"context"
	"slices"

	"slowpath/internal/wire/target"
)

// This file fills the seats of a routed load, as nodes come and go.

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
		w.routing = w.newRouting(w.seats())
		for _, number := range now.members {
			n := w.node(number)
			for client := range int32(w.routing.clients) {
				n.dialing[client] = true
			}
		}
	}
	var places []place
	for i := range r.Connections {
		for _, number := range now.members {
			w, client := r.workers[i%len(r.workers)], int32(i/len(r.workers))
			places = append(places, place{
				to: r.router.node(number), worker: w, seat: w.routing.seat(number, client),
				may: !slices.Contains(now.all, number),
			})
		}
	}
	return r.fill(ctx, places)
}

// seatTarget is where a seat's connection goes; any goroutine may call it.
func (w *worker) seatTarget(seat int) target.Target {
	if w.routing == nil {
		return w.r.Target
	}
	number, _ := w.routing.seated(seat)
	return w.r.router.node(number)
}

// beginRouted takes the first connections and draws the first calls.
func (w *worker) beginRouted() {
	w.admit()
	if w.arrivals == nil {
		for client := range int32(w.routing.clients) {
			w.refill(&conn{link: &link{client: client}}, 0)
		}
	}
	w.dispatchRouted()
}

// join makes a new connection one of a node's, and sends what waited for it.
func (w *worker) join(c *conn) {
	x := w.routing
	number, client := x.seated(c.index)
	c.link = &link{node: number, client: client, calls: make([]routed, len(c.flights))}
	n := w.node(number)
	n.dialing[client] = false
	n.up++
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

// part ends a connection's place at its node. The calls that were on it have had no reply, and others may be drawn for
// them.
func (w *worker) part(c *conn, calls int) {
	x, l := w.routing, c.link
	c.count = 0
	x.nodes[l.node].up--
	w.r.router.old() // the node may have failed
	w.fill(l.node, l.client, 0)
	if w.arrivals == nil {
		w.refill(c, calls)
	}
}

// notSeated is a connection that could not be opened.
func (w *worker) notSeated(seat, attempts int) {
	number, client := w.routing.seated(seat)
	w.node(number).dialing[client] = false
	w.r.router.old()
	w.fill(number, client, attempts)
}

// fill connects a seat, unless its node is not in the routes any more and no call waits there.
func (w *worker) fill(number int16, client int32, attempts int) {
	n := w.node(number)
	_, member := slices.BinarySearch(w.routing.routes.members, number)
	if n.dialing[client] || !member && w.lane(n, client).n == 0 {
		return
	}
	n.dialing[client] = true
	w.redial(w.routing.seat(number, client), attempts)
}

// staff connects the seats of a node that have no connection.
func (w *worker) staff(number int16) {
	w.node(number)
	for client := range int32(w.routing.clients) {
		if w.conns[w.routing.seat(number, client)].dead {
			w.fill(number, client, 0)
		}
	}
}

// reroute follows new routes: nodes that are new are connected to, and calls that wait may go elsewhere.
func (w *worker) reroute() {
	x := w.routing
	for _, number := range x.routes.members {
		w.staff(number)
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
			if !k.asking { // who is asked is not known by the routes
				k.node = none
			}
			w.place(k, request)
		}
	}
}

// leaveRouted gives back the calls that were never sent: they were due, and nobody could send them.
func (w *worker) leaveRouted() {
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

// abandonRouted counts the calls that were to be sent again and have no reply yet.
func (w *worker) abandonRouted() {
	for _, q := range w.routing.queues() {
		for i := range q.n {
			w.outlived(-1, &q.calls[(q.head+i)&(len(q.calls)-1)].flight)
		}
	}
	for i := range w.routing.later {
		w.outlived(-1, &w.routing.later[i].call.flight)
	}
}

// queues are all in which calls wait for a connection.
func (x *routing) queues() []*waiting {
	list := []*waiting{&x.homeless}
	for _, n := range x.nodes {
		for i := range n.waiting {
			list = append(list, &n.waiting[i])
		}
	}
	return list
}

// rollRouted counts what each node answered.
func (w *worker) rollRouted() {
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
