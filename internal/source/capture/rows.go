package capture

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

const (
	// delayedNs: an acknowledgement that comes so late was not sent when the request arrived, but when the kernel's
	// timer for it expired (TCP_DELACK_MIN of include/net/tcp.h, 40 ms, less what the clock and the path vary).
	delayedNs = int64(30e6)
	// publishNs is how often the use of a connection is recorded.
	publishNs = int64(1e9)
	// maxHists are histograms of commands at servers: each takes 30 kB.
	maxHists = 2000
	// ackDelayNs: the acknowledgement of a single segment may be delayed by so much (TCP_DELACK_MAX).
	ackDelayNs = int64(200e6)
)

// unacked is a reply that its receiver has not acknowledged.
type unacked struct {
	end    uint32
	bytes  int64
	sentNs int64
	slow   bool
	resent int64
	closed bool // the client's window was closed since its request came
}

// take records a call.
func (c *conn) take(k call) {
	a, n := c.a, c.node
	if n == nil || c.observer {
		return
	}
	ns := max(k.endNs-k.fromNs, 0)
	c.usage(k, ns)
	c.followHandshake(k)
	if k.blocking {
		if ns >= int64(a.Slow) {
			a.event(n, recording.KindBlockingCommand, k.fromNs, ns, recording.BlockingCommandDetail{
				Op: k.op.name, Client: c.name(), Behind: len(c.waiting),
			})
			if recording.AwaitsAcks(k.op.name) {
				c.row(k, ns)
			}
		}
		return
	}
	a.seen.calls++
	n.calls++
	a.record(n, k.op, ns)
	if k.err != "" {
		a.countError(n, k)
	}
	slow := ns >= int64(a.Slow)
	wanted := a.pair.wants(c, k)
	c.awaitAck(k, slow)
	if !slow && !wanted {
		if k.endNs < a.sampledNs {
			return
		}
		a.sampledNs = k.endNs + samplePeriodNs
	}
	a.pair.take(c, k)
	c.row(k, ns)
	if slow && k.ackNs > 0 {
		a.event(n, recording.KindRequestAck, k.toNs, k.ackNs-k.toNs, recording.RequestAckDetail{
			Client: c.name(), Op: k.op.name, ReplyNs: max(k.firstNs-k.ackNs, 0), Delayed: k.ackNs-k.toNs >= delayedNs,
		})
	}
}

// row records a call that took ns one by one.
func (c *conn) row(k call, ns int64) {
	row := recording.Call{
		Source: recording.SourceTap, Conn: c.name(), Op: k.op.name, ArgCount: k.args,
		RequestBytes: k.bytes, ReplyBytes: k.replyBytes, IntendedNs: k.fromNs, StartNs: k.fromNs, EndNs: k.fromNs + ns,
		Node: c.node.address.String(), Slot: -1, Side: c.node.side(), Seq: k.end,
	}
	if k.err != "" {
		row.Error = "error reply"
	}
	c.a.rows++
	c.a.sink.Call(row, c.segments(k)...)
}

// record counts a call in the histograms.
func (a *analysis) record(n *node, o *op, ns int64) {
	h := n.hists[o]
	if h == nil {
		if a.hists >= maxHists {
			a.seen.opsFull++
			return
		}
		if n.hists == nil {
			n.hists = map[*op]*latencies{}
		}
		h = &latencies{hdr: hdrhistogram.New(1, int64(time.Minute), 2)}
		n.hists[o] = h
		a.hists++
	}
	h.used = true
	_ = h.hdr.RecordValue(min(ns, int64(time.Minute))) // within its bounds
}

// latencies are those of a command in this second.
type latencies struct {
	hdr  *hdrhistogram.Histogram
	used bool
}

// writeHistograms records the second that has ended.
func (a *analysis) writeHistograms() {
	for _, n := range a.nodes {
		for o, h := range n.hists {
			if !h.used {
				continue
			}
			encoded, err := h.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err == nil {
				a.rows++
				a.sink.Histogram(recording.Histogram{
					Second: a.second, Source: recording.SourceTap, Node: n.address.String(),
					Op: n.side() + " " + o.name, HDR: encoded,
				})
			}
			h.hdr.Reset()
			h.used = false
		}
	}
}

// countError counts an error reply by its first word, where that can be one of the server's.
func (a *analysis) countError(n *node, k call) {
	code := "?"
	if isErrorCode(k.err) {
		code = k.err
	}
	if n.errors == nil {
		n.errors = map[string]float64{}
	}
	name := recording.ErrorRepliesName(n.side(), k.op.name, code)
	if _, known := n.errors[name]; known || len(n.errors) < maxErrors {
		n.errors[name]++
	}
}

// maxErrors are the kinds of error replies of a server that are counted.
const maxErrors = 200

func isErrorCode(s string) bool {
	if len(s) < 2 || len(s) > 16 {
		return false
	}
	for _, r := range s {
		if r < 'A' || r > 'Z' {
			return false
		}
	}
	return true
}

// begins: a call is in flight from now on, and none was before.
func (c *conn) begins(ns int64) {
	if c.replyNs > 0 && ns > c.replyNs {
		c.use.IdleNs += ns - c.replyNs
		c.use.IdleMaxNs = max(c.use.IdleMaxNs, ns-c.replyNs)
		if ns-c.replyNs < c.callNs/4 {
			c.use.Prompt++
		}
	}
}

// usage counts how the client uses the connection.
func (c *conn) usage(k call, ns int64) {
	c.replyNs, c.callNs = k.endNs, ns
	from := max(k.fromNs, c.flownNs)
	if k.blocking {
		c.callNs = 0
	} else {
		c.use.Calls++
		c.use.InFlightNs += max(k.endNs-from, 0)
	}
	c.flownNs = max(c.flownNs, k.endNs)
	if k.endNs-c.use.TimeNs >= publishNs {
		c.publish(k.endNs)
	}
}

// publish records how the client uses the connection.
func (c *conn) publish(ns int64) {
	if c.node == nil || c.observer || c.use.Calls == 0 {
		return
	}
	client := c.name()
	name, body := recording.SnapshotServed, recording.ConnEnds{Node: c.node.address.String()}
	if c.node.side() == recording.Client {
		name = recording.SnapshotEnds
		c.use.TimeNs = ns
		c.a.rows++
		c.a.sink.ConnUse(client, c.use)
		c.use.IdleMaxNs = 0
	}
	c.use.TimeNs = ns
	if !c.told {
		c.told = true
		c.a.rows++
		c.a.sink.Snapshot(recording.Snapshot{
			TimeNs: ns, Source: recording.SourceTap, Subject: recording.ConnPrefix + client, Name: name,
			Body: recording.Detail(body),
		})
	}
}

// retransmit records that an end sent something again.
func (a *analysis) retransmit(c *conn, h *half, r retransmission, state string) {
	a.event(c.node, recording.KindRetransmit, r.fromNs, r.toNs-r.fromNs, recording.RetransmitDetail{
		Client: c.name(), From: sideOf(h), State: state, Why: r.why, Total: h.resent,
		Unacked: int64(max(behind(h.acked, h.top), 0)),
	})
}

// awaitAck follows when the reply of a call is acknowledged: where the capture was made at the server's side, and where
// the client had closed its window.
func (c *conn) awaitAck(k call, slow bool) {
	closed := c.client.zeroNs > 0 || len(k.shut) > 0
	if c.node.vantage != atServer && !closed || len(c.unacked) >= maxTentative {
		return
	}
	c.unacked = append(c.unacked, unacked{
		end: k.replyEnd, bytes: int64(max(behind(c.server.acked, k.replyEnd), 0)), sentNs: k.endNs, slow: slow,
		closed: closed,
	})
}

// replyAcked takes an acknowledgement by the client's kernel.
func (c *conn) replyAcked(p *packet) {
	for len(c.unacked) > 0 && behind(c.unacked[0].end, p.ack) >= 0 {
		u := c.unacked[0]
		c.unacked = c.unacked[1:]
		ns := p.ns - u.sentNs
		sure := ns
		if u.resent == 0 && !u.closed {
			sure = max(ns-ackDelayNs, 0)
		}
		trip := c.node.toClientNs
		if u.slow || u.closed || sure >= trip+int64(c.a.Slow) {
			c.a.event(c.node, recording.KindAcknowledged, u.sentNs, ns, recording.AckDetail{
				Client: c.name(), Unacked: u.bytes, MinWaitNs: sure, Retransmitted: u.resent,
				WindowClosed: u.closed, RTTMinNs: trip,
			})
		}
	}
}

// closedWindow: an end's window was closed for a time. While the client's is, the server cannot send.
func (c *conn) closedWindow(h *half, from, to int64) {
	if h.client {
		if len(c.waiting) > 0 && len(c.shut) < maxSpans {
			c.shut = append(c.shut, span{from, to})
		}
		for i := range c.unacked {
			c.unacked[i].closed = true
		}
	}
}
