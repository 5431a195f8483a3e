//go:build linux

package engine

import (
	"slowpath/internal/load/workload"
)

// A routed load has several nodes: those of a cluster, a master and its replicas, or the master of the moment that
// sentinels name.
//
// Connections of its options are clients, each with one connection to each node, as cluster clients of applications
// have. In a closed loop a client has Pipeline calls under way, each on its own connection to the node of the call's
// slot; a call whose connection is down waits at its seat. In an open loop any connection to the node that has room
// takes the call, and where none has it waits at the node, so that a node that is slow does not hold up what is due at
// others.

// call is a request on its way: what a flight has, and what it takes to send it again.
type call struct {
	flight
	routed
	client int32
}

// routed is what a call of a routed load has beside its flight.
type routed struct {
	size    int32  // bytes of the request
	slot    int16  // -1 without a key
	node    int16  // that a redirect named, none: that of the slot
	replies uint16 // to the whole request
	tries   uint16 // replies that said that it is to be sent again
	asking  bool   // ASKING goes before it
	master  bool   // a replica would not take it
	again   verdict
}

// link is what a connection of a routed load has beside.
type link struct {
	node   int16
	client int32
	calls  []routed // beside conn.flights, with the same indices
	sent   window   // requests of the calls
	dirty  bool     // in routing.dirty
}

// node is a worker's view of one node.
type node struct {
	dialing []bool    // by client
	up      int       // connections
	waiting []waiting // closed loop: by client; open loop: one for all
	idle    queue     // open loop: one entry for each call that could be sent now
	calls   int64     // that it answered since the last roll
}

// routing is the part of a worker that chooses nodes.
type routing struct {
	routes   *routes // those of the last look
	clients  int
	reads    []bool // by op
	nodes    []*node
	dirty    []*conn // to be flushed
	draft    []byte  // the request that was drawn last
	turn     int     // of replicas
	under    []int32 // calls under way, by client; closed loop
	waiting  int     // calls that wait for a connection
	homeless waiting // calls for slots that nobody serves
	later    later   // calls to be sent again after a pause
	asking   []byte  // ASKING, encoded
}

// mostWaiting bounds the calls of an open loop that wait at their nodes, per worker. With so many the schedule waits
// too, as it does with one node.
const mostWaiting = 1 << 16

func (w *worker) newRouting(clients int) *routing {
	x := &routing{
		routes: w.r.router.current.Load(), clients: clients, under: make([]int32, clients),
		asking: []byte("*1\r\n$6\r\nASKING\r\n"),
	}
	for _, op := range w.r.Ops() {
		x.reads = append(x.reads, op.ReadOnly)
	}
	return x
}

// node gives a node's place, and makes seats for its connections the first time.
func (w *worker) node(number int16) *node {
	x := w.routing
	for len(x.nodes) <= int(number) {
		n := &node{dialing: make([]bool, x.clients), waiting: make([]waiting, 1)}
		if w.arrivals == nil {
			n.waiting = make([]waiting, x.clients)
		}
		x.nodes = append(x.nodes, n)
		for range x.clients {
			w.conns = append(w.conns, &conn{dead: true})
		}
	}
	return x.nodes[number]
}

// seat is the place of a client's connection to a node.
func (x *routing) seat(number int16, client int32) int { return int(number)*x.clients + int(client) }

// seated is what a seat is for.
func (x *routing) seated(seat int) (number int16, client int32) {
	return int16(seat / x.clients), int32(seat % x.clients)
}

// lane is where calls of a client wait at a node.
func (w *worker) lane(n *node, client int32) *waiting {
	if w.arrivals == nil {
		return &n.waiting[client]
	}
	return &n.waiting[0]
}

// draw makes the next call. sent is 0 for one whose service time counts from when it can be sent.
func (w *worker) draw(client int32, intended, sent int64) {
	x := w.routing
	var q workload.Request
	x.draft, q = w.stream.Next(x.draft[:0])
	w.drawn(q, client, intended, sent)
}

// drawn begins the call whose request is the draft.
func (w *worker) drawn(q workload.Request, client int32, intended, sent int64) {
	w.begun()
	w.place(call{
		flight: flight{intended: intended, sent: sent, key: q.Key, op: q.Op},
		routed: routed{slot: q.Slot, node: none, replies: q.Replies},
		client: client,
	}, w.routing.draft)
}

// place sends a call on a connection to its node, or lets it wait for one.
func (w *worker) place(k call, request []byte) {
	x := w.routing
	number := k.node
	if number == none {
		number = w.pick(&k)
	}
	if number == none {
		x.waiting++
		x.homeless.put(k, request)
		w.r.router.old()
		return
	}
	n := w.node(number)
	if c := w.room(n, number, k.client); c != nil {
		w.enqueue(c, k, request)
		return
	}
	x.waiting++
	q := w.lane(n, k.client)
	q.put(k, request)
	if n.up == 0 && q.n == 1 {
		w.r.router.old()
		w.staff(number)
	}
}

// room gives a connection that can take a call, nil where there is none.
func (w *worker) room(n *node, number int16, client int32) *conn {
	if w.arrivals == nil {
		if c := w.conns[w.routing.seat(number, client)]; !c.dead {
			return c
		}
		return nil
	}
	for !n.idle.empty() {
		if c := n.idle.take(); !c.dead {
			return c
		}
	}
	return nil
}

// enqueue appends a call to what a connection is to send.
func (w *worker) enqueue(c *conn, k call, request []byte) {
	l := c.link
	if k.sent == 0 {
		k.sent = w.now
	}
	k.flight.replies, k.again = k.routed.replies, fine
	if k.asking {
		c.out = append(c.out, w.routing.asking...)
		k.flight.replies++
	}
	k.size = int32(len(request))
	c.out = append(c.out, request...)
	l.sent.add(request)
	l.calls[(c.head+c.count)&(len(c.flights)-1)] = k.routed
	*c.last() = k.flight
	if !l.dirty {
		l.dirty = true
		w.routing.dirty = append(w.routing.dirty, c)
	}
}

// pick chooses the node of a call by its slot; none where nobody serves it.
func (w *worker) pick(k *call) int16 {
	x := w.routing
	var master int16
	if k.slot >= 0 {
		master = x.routes.masters[k.slot]
	} else if all := x.routes.all; len(all) > 0 {
		x.turn++
		master = all[x.turn%len(all)]
	} else {
		return none
	}
	if w.r.ReadFrom == Master || k.master || master == none || !x.reads[k.op] {
		return master
	}
	return w.reader(master, k.client)
}

// reader chooses who serves a read, in turn among those that are connected.
func (w *worker) reader(master int16, client int32) int16 {
	x := w.routing
	replicas := x.routes.replicas[master]
	choices := len(replicas)
	if w.r.ReadFrom == Any {
		choices++
	}
	x.turn++
	for i := range choices {
		number := master
		if at := (x.turn + i) % choices; at < len(replicas) {
			number = replicas[at]
		}
		n := w.node(number)
		if w.arrivals == nil && !w.conns[x.seat(number, client)].dead || w.arrivals != nil && n.up > 0 {
			return number
		}
	}
	return master
}

// completed counts calls that have ended on c, and draws others.
func (w *worker) completed(c *conn, n int) {
	w.routing.nodes[c.link.node].calls += int64(n)
	w.refill(c, n)
}

// refill draws the calls that may be sent for so many that have ended on c.
func (w *worker) refill(c *conn, ended int) {
	x, client := w.routing, c.link.client
	if w.arrivals != nil {
		for range ended {
			w.release(c)
		}
		return
	}
	x.under[client] -= int32(ended)
	if w.player != nil {
		w.play(int(client))
		return
	}
	if w.r.Batch && x.under[client] > 0 {
		return
	}
	for int(x.under[client]) < w.r.Pipeline && w.left != 0 {
		x.under[client]++
		w.draw(client, w.now, w.now)
	}
}
