package capture

import (
	"cmp"
	"net/netip"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// limits are those of messages: nothing of them is kept, so that large ones cost nothing.
var limits = resp.Limits{
	MaxBulkBytes: 1 << 40, MaxReplyBytes: 1 << 41, MaxElements: 1 << 40, MaxDepth: 32, MaxLineBytes: 4 << 10,
}

// conn is a connection.
type conn struct {
	a       *analysis
	client  *half // nil as long as it is not known which end is the client
	server  *half
	ends    [2]half // in the order of connKey
	node    *node   // the server, once it is known
	lastNs  int64
	synNs   int64 // its SYN; 0: it was there before the capture
	dialNs  int64 // from the SYN to its answer
	openNs  int64 // when it was established, if that is in the capture
	proven  bool  // the server has answered a request
	foreign bool  // it does not speak RESP
	ended   bool
	closes  closing
	alias   string // the client's address at the other end of the path, where NAT has changed it
	calls
}

// closing is how a connection ended.
type closing struct {
	ns     int64
	by     string // recording.Client, Server
	reason string
	idleNs int64
}

func newConn(a *analysis, k connKey, p *packet, opens bool) *conn {
	c := &conn{a: a, lastNs: p.ns}
	c.ends[0].address, c.ends[1].address = k.low, k.high
	switch {
	case opens:
		c.setRoles(p.src)
		c.synNs, c.aligned = p.ns, true
	case a.server(k.low) && !a.server(k.high):
		c.setRoles(k.high)
	case a.server(k.high) && !a.server(k.low):
		c.setRoles(k.low)
	}
	return c
}

// setRoles sets which end is the client's.
func (c *conn) setRoles(client netip.AddrPort) {
	c.client, c.server = &c.ends[0], &c.ends[1]
	if c.ends[1].address == client {
		c.client, c.server = c.server, c.client
	}
	c.client.client = true
	c.client.frame, c.server.frame = resp.NewFramer(true, limits), resp.NewFramer(false, limits)
	if c.a.server(c.server.address) {
		c.node = c.a.nodeAt(c.server.address)
	}
}

// name is the address of the client.
func (c *conn) name() string { return cmp.Or(c.alias, c.client.address.String()) }

// halves are the direction of a packet, and the other.
func (c *conn) halves(p *packet) (from, to *half) {
	if p.src == c.ends[0].address {
		return &c.ends[0], &c.ends[1]
	}
	return &c.ends[1], &c.ends[0]
}

// over reports whether a SYN begins a new connection.
func (c *conn) over(p *packet) bool {
	h, _ := c.halves(p)
	return c.ended || c.foreign || c.openNs > 0 || c.synNs == 0 || h.synced && h.next != p.seq+1
}

// packet takes a packet of the connection.
func (c *conn) packet(p *packet) {
	h, o := c.halves(p)
	if c.ended {
		return
	}
	if h.duplicate(p) {
		c.a.seen.duplicates++
		return
	}
	c.lastNs = p.ns
	c.expireGaps(p.ns)
	if c.client == nil && p.size > 0 && isRequest(p.payload) {
		c.setRoles(p.src)
	}
	if p.flags&flagRST != 0 {
		c.reset(h, p)
		return
	}
	if p.flags&flagSYN != 0 {
		c.syn(h, p)
		return
	}
	if p.flags&flagACK != 0 {
		c.ack(h, o, p)
	}
	if c.client == nil {
		return
	}
	if p.size > 0 {
		c.data(h, p)
	}
	if p.flags&flagFIN != 0 && !c.foreign {
		c.fin(h, p)
	}
}

// syn takes a SYN, or the answer to it.
func (c *conn) syn(h *half, p *packet) {
	if h.synced && c.synNs > 0 && h.next == p.seq+1 { // again
		if h.client && c.node != nil {
			r := retransmission{fromNs: h.topNs, toNs: p.ns, why: recording.RetransmitTimeout}
			c.a.retransmit(c, h, r, "syn-sent")
			h.resent++
		}
		h.topNs = p.ns
		return
	}
	h.synced, h.next, h.top, h.topNs = true, p.seq+1, p.seq+1, p.ns
	if p.flags&flagACK != 0 && c.client != nil && !h.client && c.synNs > 0 {
		c.dialNs = p.ns - c.synNs
		if c.node != nil && c.client.resent == 0 {
			c.node.roundTrip(true, c.dialNs)
		}
	}
}

// ack takes an acknowledgement by h of what o sent.
func (c *conn) ack(h, o *half, p *packet) {
	if c.synNs > 0 && c.openNs == 0 && h.client && c.dialNs > 0 {
		c.established(p)
	}
	if trip := o.acknowledge(p); trip > 0 && c.node != nil {
		c.node.roundTrip(o.client, trip)
	}
	if c.client == nil {
		return
	}
	if p.size == 0 && o.client {
		c.bareAck(p)
	}
	if !o.client {
		c.replyAcked(p)
	}
	c.window(h, p)
	if o.synced && behind(o.next, p.ack) > 0 && (o.finNs == 0 || behind(o.next, p.ack) > 1) {
		if o.ackedNs == 0 {
			o.ackedNs = p.ns
		}
	} else {
		o.ackedNs = 0
	}
}

// established: the answer to the SYN was acknowledged.
func (c *conn) established(p *packet) {
	c.openNs = p.ns
	if c.node != nil {
		c.node.roundTrip(false, p.ns-c.synNs-c.dialNs)
	}
	c.shake = &handshake{}
}

// window follows when an end closes its window.
func (c *conn) window(h *half, p *packet) {
	switch {
	case p.window == 0 && h.zeroNs == 0:
		h.zeroNs = p.ns
	case p.window != 0 && h.zeroNs != 0:
		c.closedWindow(h, h.zeroNs, p.ns)
		h.zeroNs = 0
	}
}

// data takes a segment with data.
func (c *conn) data(h *half, p *packet) {
	if !h.synced {
		h.synced, h.next, h.top, h.topNs = true, p.seq, p.seq, p.ns
	}
	if h.sizes == nil && c.node != nil {
		h.sizes = c.sizesOf(h)
	}
	if r, is := h.again(p); is {
		if _, o := c.halves(p); r.lost > 0 && o.zeroNs == 0 { // else it probes a closed window
			h.sizes.Lose(1, int64(r.lost), r.toNs-r.fromNs)
		}
		c.resent(h, r)
	} else if behind(h.top, p.seq+uint32(p.size)) > 0 {
		h.sent(p)
	}
	if h.client {
		c.silentNs = p.ns - max(c.client.dataNs, c.server.dataNs, c.a.startNs)
	}
	h.dataNs = p.ns
	switch ahead := behind(h.next, p.seq); {
	case ahead > 0:
		c.hold(h, p)
	case ahead+p.size > 0:
		old := -ahead
		have := p.payload[min(old, len(p.payload)):]
		c.deliver(h, have, p.size-old, p.ns)
		c.unhold(h)
	}
}

// hold keeps a segment that came before others.
func (c *conn) hold(h *half, p *packet) {
	cost := len(p.payload) + segmentBytes
	if h.bytes+cost > maxHeldConn || c.a.heldBytes+cost > maxHeld ||
		behind(h.next, p.seq) > maxHeldAhead {
		c.gap(h, p.seq)
		c.unhold(h)
		c.deliver(h, p.payload, p.size, p.ns)
		return
	}
	i := 0
	for i < len(h.held) && behind(h.held[i].seq, p.seq) > 0 {
		i++
	}
	s := segment{p.seq, p.size, p.ns, append([]byte(nil), p.payload...)}
	h.held = append(h.held[:i], append([]segment{s}, h.held[i:]...)...)
	h.bytes += cost
	c.a.heldBytes += cost
}

// maxHeldAhead is how many bytes ahead of the stream a segment can be: the largest window of TCP.
const maxHeldAhead = 1 << 30

// unhold delivers held segments whose turn has come.
func (c *conn) unhold(h *half) {
	for len(h.held) > 0 {
		s := h.held[0]
		ahead := behind(h.next, s.seq)
		if ahead > 0 {
			return
		}
		h.held = h.held[1:]
		h.bytes -= len(s.data) + segmentBytes
		c.a.heldBytes -= len(s.data) + segmentBytes
		if ahead+s.size > 0 {
			old := -ahead
			c.deliver(h, s.data[min(old, len(s.data)):], s.size-old, s.ns)
		}
	}
	h.held = nil
}

// expireGaps gives up waiting for data that the capture does not have, though the other end has acknowledged it.
func (c *conn) expireGaps(ns int64) {
	for i := range c.ends {
		h := &c.ends[i]
		if h.ackedNs == 0 || ns-h.ackedNs < lostNs || h.frame == nil {
			continue
		}
		h.ackedNs = 0
		to := h.acked
		if len(h.held) > 0 && behind(h.held[0].seq, to) > 0 {
			to = h.held[0].seq
		}
		if h.finNs > 0 {
			to-- // the FIN takes a number, too
		}
		if behind(h.next, to) > 0 {
			c.gap(h, to)
			c.unhold(h)
		}
	}
}

// gap passes over data that is not in the capture.
func (c *conn) gap(h *half, to uint32) {
	missing := behind(h.next, to)
	h.next = to
	if behind(h.top, to) > 0 {
		h.top = to
	}
	c.lost(h, int64(missing))
}

// deliver takes the next bytes of a direction: size on the wire, of which the capture has some.
func (c *conn) deliver(h *half, have []byte, size int, ns int64) {
	h.next += uint32(len(have))
	if len(have) > 0 {
		c.bytes(h, have, ns)
	}
	if missing := size - len(have); missing > 0 {
		h.next += uint32(missing)
		c.lost(h, int64(missing))
	}
}

// fin takes the end of a direction.
func (c *conn) fin(h *half, p *packet) {
	if h.finNs == 0 {
		h.finNs = p.ns
		if c.closes.ns == 0 {
			c.closes = closing{p.ns, sideOf(h), "", c.idle(p.ns)}
		}
	}
	if c.client.finNs > 0 && c.server.finNs > 0 {
		c.end()
	}
}

// reset takes a RST.
func (c *conn) reset(h *half, p *packet) {
	if c.client == nil || c.ended {
		return
	}
	if c.closes.ns == 0 {
		c.closes = closing{p.ns, sideOf(h), recording.CloseReset, c.idle(p.ns)}
	}
	if c.synNs > 0 && c.openNs == 0 && !h.client {
		c.closes = closing{p.ns, "", recording.CloseRefused, 0}
		c.dialNs = p.ns - c.synNs
	}
	c.end()
}

// idle is for how long nothing was sent.
func (c *conn) idle(ns int64) int64 {
	last := max(c.client.dataNs, c.server.dataNs, c.openNs)
	if last == 0 {
		return 0
	}
	return ns - last
}

func sideOf(h *half) string {
	if h.client {
		return recording.Client
	}
	return recording.Server
}
