package capture

import (
	"strings"

	"slowpath/internal/recording"
)

// handshake is a new connection's commands until the first that does work.
type handshake struct {
	ops              []string
	library, version string
	trips            int
	lastNs           int64 // end of the last
}

const maxHandshakeOps = 16

// setInfo takes what a client library says of itself.
func (h *handshake) setInfo(field, value []byte) {
	const kept = 8 // bytes
	s := strings.Map(func(r rune) rune {
		if r < 0x21 || r > 0x7e {
			return '?'
		}
		return r
	}, strings.ToLower(string(value[:min(len(value), kept)])))
	switch strings.ToUpper(string(field)) {
	case "LIB-NAME":
		h.library = s
	case "LIB-VER":
		h.version = s
	}
}

// followHandshake follows the first calls of a new connection.
func (c *conn) followHandshake(k call) {
	h := c.shake
	if h == nil {
		return
	}
	ready := max(h.lastNs, c.openNs)
	if k.fromNs >= h.lastNs {
		h.trips++
	}
	h.lastNs = max(h.lastNs, k.endNs)
	if recording.OfHandshake(k.op.name) && len(h.ops) < maxHandshakeOps {
		h.ops = append(h.ops, k.op.name)
		return
	}
	c.shake = nil
	c.open()
	c.a.event(c.node, recording.KindHandshake, c.synNs, k.endNs-c.synNs, recording.HandshakeDetail{
		Client: c.name(), Side: c.node.side(), DialNs: c.dialled(), Ops: h.ops, Library: h.library,
		Version: h.version, RoundTrips: h.trips - 1, IdleNs: max(k.fromNs-ready, 1), Op: k.op.name, Bytes: k.bytes,
	})
}

// dialled is how long the client's connect took, where that was seen.
func (c *conn) dialled() int64 {
	if c.node.side() == recording.Client {
		return c.dialNs
	}
	return 0
}

// open records that a connection was opened, once.
func (c *conn) open() {
	if c.opened || c.openNs == 0 || c.node == nil || c.observer {
		return
	}
	c.opened = true
	c.a.event(c.node, recording.KindOpen, c.openNs, 0, recording.ConnDetail{
		Client: c.name(), Side: c.node.side(), DialNs: c.dialled(),
	})
}

// end ends a connection: it was closed, its ports are used again, or it has been silent for long.
func (c *conn) end() {
	if c.ended || c.foreign || c.client == nil {
		c.ended = true
		return
	}
	c.countOneWay()
	c.settleCalm()
	c.ended = true
	known := c.proven || c.node != nil && c.synNs > 0
	if known && !c.observer && c.closes.ns > 0 {
		c.open()
		c.publish(c.closes.ns)
		c.a.event(c.node, recording.KindClose, c.closes.ns, 0, c.closeDetail())
	}
	c.a.seen.unpaired += int64(len(c.tentative))
	c.drop()
	c.client.frame, c.server.frame = nil, nil
}

// countOneWay counts the requests of a connection of which the capture has one direction.
func (c *conn) countOneWay() {
	if !c.ended && !c.foreign && c.client != nil && c.server.dataNs == 0 {
		c.a.seen.oneWay += int64(len(c.waiting))
	}
}

func (c *conn) closeDetail() recording.ConnDetail {
	d := recording.ConnDetail{
		Client: c.name(), Side: c.node.side(), DialNs: c.dialled(), IdleNs: c.closes.idleNs,
		Calls: c.use.Calls, InFlightNs: c.use.InFlightNs, By: c.closes.by, Reason: c.closes.reason,
	}
	if c.openNs > 0 {
		d.AgeNs = c.closes.ns - c.openNs
	} else if c.synNs > 0 {
		d.DialNs = c.dialNs
	}
	if len(c.waiting) > 0 && c.aligned {
		r := c.waiting[0]
		d.Waiting, d.Op, d.OpBytes, d.Blocking = len(c.waiting), r.op.name, r.bytes, r.blocking
		d.InFlightNs += max(c.closes.ns-max(r.fromNs, c.flownNs), 0)
	}
	return d
}
