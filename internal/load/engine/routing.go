//go:build linux

package engine

import (
	"slowpath/internal/load/workload"
)

// A routed load has several nodes: those of a cluster, a master and its replicas, or the current master that sentinels
// name.
//
// Options.Connections is the number of its clients, each with one connection to each node, as cluster clients of
// applications have. In a closed loop a client has Pipeline calls in flight, each on its connection to the node of the
// call's slot; a call whose connection is down waits for that connection. In an open loop any connection to the node
// that has room takes the call, and where none has it waits at the node, so that a slow node does not delay calls to
// others.

// call is a request with what it takes to send it again.
type call struct {
	inflightCall
	routed
	client int32
}

// routed is the part of a call that only a routed load needs.
type routed struct {
	size    int32  // bytes of the request
	slot    int16  // -1 without a key
	node    int16  // named by a redirect; none: that of the slot
	replies uint16 // to the whole request
	tries   uint16 // how often it was sent again
	asking  bool   // it is sent after ASKING
	master  bool   // it goes to the master
	retry   retry
}

// routedConn is the part of a connection that only a routed load needs.
type routedConn struct {
	node   int16
	client int32
	calls  []routed // with the indices of conn.inflight
	sent   window   // requests of the calls
	dirty  bool     // in routing.dirty
}

// node is a worker's view of one node.
type node struct {
	dialing   []bool    // by client
	connected int       // connections
	waiting   []waiting // closed loop: by client; open loop: one for all
	idle      queue     // open loop: one entry per call that has room now
	calls     int64     // replies in the current second
}

// routing is the part of a worker that chooses nodes.
type routing struct {
	routes   *routes // as last seen by this worker
	clients  int
	reads    []bool // by op
	nodes    []*node
	dirty    []*conn    // to flush
	draft    []byte     // the last drawn request
	rotation int        // of replicas
	inFlight []int32    // calls in flight, by client; closed loop
	waiting  int        // calls that wait for a connection
	noNode   waiting    // calls for slots without a node
	retries  retryQueue // calls that are sent again after a pause
	asking   []byte     // ASKING, encoded
}

// maxWaiting bounds the calls of an open loop that wait at their nodes, per worker. At this number the schedule waits
// too, as it does with one node.
const maxWaiting = 1 << 16

func (w *worker) newRouting(clients int) *routing {
	x := &routing{
		routes: w.r.router.current.Load(), clients: clients, inFlight: make([]int32, clients),
		asking: []byte("*1\r\n$6\r\nASKING\r\n"),
	}
	for _, op := range w.r.Ops() {
		x.reads = append(x.reads, op.ReadOnly)
	}
	return x
}

// node gives a node; a new one gets indices for its connections.
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

// connIndex is the index of a client's connection to a node.
func (x *routing) connIndex(number int16, client int32) int {
	return int(number)*x.clients + int(client)
}

// nodeAndClient is the inverse of connIndex.
func (x *routing) nodeAndClient(index int) (number int16, client int32) {
	return int16(index / x.clients), int32(index % x.clients)
}

// waitingAt is the queue of a client's calls at a node.
func (w *worker) waitingAt(n *node, client int32) *waiting {
	if w.arrivals == nil {
		return &n.waiting[client]
	}
	return &n.waiting[0]
}

// draw makes the next call. sent is 0 for one whose service time begins when it can be sent.
func (w *worker) draw(client int32, intended, sent int64) {
	x := w.routing
	var q workload.Request
	x.draft, q = w.stream.Next(x.draft[:0])
	w.drawn(q, client, intended, sent)
}

// drawn begins the call whose request is the draft.
func (w *worker) drawn(q workload.Request, client int32, intended, sent int64) {
	w.countBegun()
	w.place(call{
		inflightCall: inflightCall{intended: intended, sent: sent, key: q.Key, op: q.Op},
		routed:       routed{slot: q.Slot, node: none, replies: q.Replies},
		client:       client,
	}, w.routing.draft)
}

// place sends a call on a connection to its node, or queues it.
func (w *worker) place(k call, request []byte) {
	x := w.routing
	number := k.node
	if number == none {
		number = w.pick(&k)
	}
	if number == none {
		x.waiting++
		x.noNode.put(k, request)
		w.r.router.markStale()
		return
	}
	n := w.node(number)
	if c := w.room(n, number, k.client); c != nil {
		w.enqueue(c, k, request)
		return
	}
	x.waiting++
	q := w.waitingAt(n, k.client)
	q.put(k, request)
	if n.connected == 0 && q.n == 1 {
		w.r.router.markStale()
		w.connectNode(number)
	}
}

// room gives a connection that can take a call, nil where there is none.
func (w *worker) room(n *node, number int16, client int32) *conn {
	if w.arrivals == nil {
		if c := w.conns[w.routing.connIndex(number, client)]; !c.dead {
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

// enqueue appends a call to the requests of a connection.
func (w *worker) enqueue(c *conn, k call, request []byte) {
	l := c.routed
	if k.sent == 0 {
		k.sent = w.now
	}
	k.inflightCall.replies, k.retry = k.routed.replies, noRetry
	if k.asking {
		c.out = append(c.out, w.routing.asking...)
		k.inflightCall.replies++
	}
	k.size = int32(len(request))
	c.out = append(c.out, request...)
	l.sent.add(request)
	l.calls[(c.head+c.count)&(len(c.inflight)-1)] = k.routed
	*c.last() = k.inflightCall
	if !l.dirty {
		l.dirty = true
		w.routing.dirty = append(w.routing.dirty, c)
	}
}

// pick chooses the node of a call by its slot; none without one.
func (w *worker) pick(k *call) int16 {
	x := w.routing
	var master int16
	if k.slot >= 0 {
		master = x.routes.masters[k.slot]
	} else if all := x.routes.all; len(all) > 0 {
		x.rotation++
		master = all[x.rotation%len(all)]
	} else {
		return none
	}
	if w.r.ReadFrom == Master || k.master || master == none || !x.reads[k.op] {
		return master
	}
	return w.reader(master, k.client)
}

// reader chooses the node for a read, in turn among those that are connected.
func (w *worker) reader(master int16, client int32) int16 {
	x := w.routing
	replicas := x.routes.replicas[master]
	choices := len(replicas)
	if w.r.ReadFrom == Any {
		choices++
	}
	x.rotation++
	for i := range choices {
		number := master
		if at := (x.rotation + i) % choices; at < len(replicas) {
			number = replicas[at]
		}
		n := w.node(number)
		if w.arrivals == nil && !w.conns[x.connIndex(number, client)].dead || w.arrivals != nil && n.connected > 0 {
			return number
		}
	}
	return master
}

// completed counts calls that have ended on c, and draws others.
func (w *worker) completed(c *conn, n int) {
	w.routing.nodes[c.routed.node].calls += int64(n)
	w.refill(c, n)
}

// refill draws calls in place of those that have ended on c.
func (w *worker) refill(c *conn, ended int) {
	x, client := w.routing, c.routed.client
	if w.arrivals != nil {
		for range ended {
			w.release(c)
		}
		return
	}
	x.inFlight[client] -= int32(ended)
	if w.replayer != nil {
		w.sendDue(int(client))
		return
	}
	if w.r.Batch && x.inFlight[client] > 0 {
		return
	}
	for int(x.inFlight[client]) < w.r.Pipeline && w.remaining != 0 {
		x.inFlight[client]++
		w.draw(client, w.now, w.now)
	}
}
