package capture

import (
	"net/netip"
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

const (
	maxHeldConn = 1 << 20 // bytes of segments that came before others, of one direction
	maxMarks    = 16      // segments whose acknowledgement is awaited, of one direction
	// reorderedNs: a segment that comes after later ones, but no later than this, was overtaken and not lost.
	reorderedNs = int64(3e6)
	// lostNs: what is acknowledged for longer than this, and is not in the capture, will not come any more.
	lostNs = int64(2e6)
	// duplicateNs: the same segment within this time is one that was captured at two interfaces.
	duplicateNs = int64(1e6)
)

// half is one direction of a connection: the bytes that one end sends.
type half struct {
	address netip.AddrPort
	client  bool // it is the client's
	synced  bool // next is known
	next    uint32
	top     uint32 // after the last byte that was sent
	topNs   int64
	acked   uint32 // by the other end
	ackedNs int64  // when that began to be more than the capture has; 0: it is not
	held    []segment
	bytes   int // of held
	marks   []mark
	last    [4]seal
	lastAt  int
	dataNs  int64 // last segment with data
	resent  int64 // segments
	acks    int   // in a row that acknowledged nothing new
	zeroNs  int64 // since when its window is closed; 0: it is open
	finNs   int64
	frame   *resp.Framer
	sizes   *recording.SegmentSizes // nil: not kept
}

// segmentBytes are what a segment that is held takes besides its data.
const segmentBytes = 128

// segment is data that came before other data.
type segment struct {
	seq  uint32
	size int
	ns   int64
	data []byte
}

// mark is a segment that is not acknowledged yet.
type mark struct {
	from, to uint32
	ns       int64 // when it was sent last
	resent   bool
	again    uint32 // first byte of what of it was sent again last,
	bytes    int    // and how many; 0: it was not
}

// seal tells a packet from all others.
type seal struct {
	seq, ack, stamp uint32
	size            int
	id, window      uint16
	ns              int64
}

// duplicate reports whether the capture has the packet twice, as one of several interfaces has: a retransmission has
// an IP identification and a timestamp of its own, and does not come at once.
func (h *half) duplicate(p *packet) bool {
	s := seal{p.seq, p.ack, p.stamp, p.size, p.id, p.window, p.ns}
	for _, o := range h.last {
		same := o.ns != 0 && o.seq == s.seq && o.ack == s.ack && o.stamp == s.stamp && o.size == s.size &&
			o.window == s.window && o.id == s.id
		if same && s.ns-o.ns < duplicateNs && (s.id != 0 || s.size > 0) {
			return true
		}
	}
	h.last[h.lastAt] = s
	h.lastAt = (h.lastAt + 1) % len(h.last)
	return false
}

// behind is how far a is behind b in the circle of sequence numbers; below 0: it is ahead.
func behind(a, b uint32) int { return int(int32(b - a)) }

// sent notes a segment that was sent now for the first time.
func (h *half) sent(p *packet) {
	end := p.seq + uint32(p.size)
	h.top, h.topNs = end, p.ns
	if len(h.marks) < maxMarks {
		h.marks = append(h.marks, mark{from: p.seq, to: end, ns: p.ns})
	}
}

// acknowledge takes an acknowledgement by the other end. It gives the round trip of a segment that was sent once; 0
// where none was acknowledged.
func (h *half) acknowledge(p *packet) (tripNs int64) {
	if behind(h.acked, p.ack) <= 0 && h.acked != 0 {
		if p.ack == h.acked && p.size == 0 && len(h.marks) > 0 {
			h.acks++
		}
		return 0
	}
	h.acked, h.acks = p.ack, 0
	for len(h.marks) > 0 && behind(h.marks[0].to, p.ack) >= 0 {
		m := h.marks[0]
		if !m.resent && m.to == p.ack {
			tripNs = max(p.ns-m.ns, 1)
		}
		if !m.resent {
			h.sizes.Pass(1, int64(behind(m.from, m.to)), 0)
		}
		h.marks = slices.Delete(h.marks, 0, 1)
	}
	return tripNs
}

// retransmission is data that was sent again.
type retransmission struct {
	fromNs, toNs int64
	why          string
	lost         int // bytes of the segment that was sent again before, in vain; 0: this is the first time
}

// again finds out whether a segment with data was sent before, wholly or in part.
func (h *half) again(p *packet) (r retransmission, is bool) {
	if !h.synced || behind(h.top, p.seq) >= 0 {
		return r, false
	}
	r = retransmission{fromNs: h.topNs, toNs: p.ns, why: recording.RetransmitTailProbe}
	if p.size <= 1 && behind(h.next, p.seq) == -1 {
		return r, false // a keepalive: a byte that was acknowledged
	}
	if fills := behind(h.next, p.seq+uint32(p.size)) > 0; fills && p.ns-h.topNs < reorderedNs {
		return r, false // it was not in the capture before: others overtook it
	}
	for i := range h.marks {
		if m := &h.marks[i]; behind(m.from, p.seq) >= 0 && behind(p.seq, m.to) > 0 {
			if m.bytes > 0 && m.again == p.seq {
				r.lost = m.bytes
			}
			r.fromNs, m.ns, m.resent, m.again, m.bytes = m.ns, p.ns, true, p.seq, p.size
			break
		}
	}
	for i := range h.marks {
		h.marks[i].resent = true // what acknowledges these may have waited for this one
	}
	switch {
	case h.acks >= 2:
		r.why = recording.RetransmitFast
	case r.toNs-r.fromNs >= timerNs:
		r.why = recording.RetransmitTimeout
	}
	h.resent++
	return r, true
}

// timerNs: the retransmission timer expires no sooner (TCP_RTO_MIN of include/net/tcp.h, 200 ms, less a tenth).
const timerNs = int64(180e6)
