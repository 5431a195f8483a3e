package host

import (
	"net/netip"
	"time"

	"slowpath/internal/recording"
)

const (
	// maxSizedHosts bounds for how many hosts of clients the sizes of segments are kept.
	maxSizedHosts = 10_000
	// maxFollowed bounds the connections that are read between two readings of all, and followEvery is how often.
	maxFollowed = 256
	followEvery = 100 * time.Millisecond
	// forgetsAfter is how long a connection has to be idle, at least, before something on the path may have forgotten
	// it: then its segments are lost, whatever their size.
	forgetsAfter = int64(1e9)
	// sizesLast is for how long before and after a loss it is said which other segments passed: paths change.
	sizesLast = int64(10e9)
)

// segmentSizes finds out, from one reading of sockets to the next, which sizes of the segments that they send arrive: a
// path that drops large ones without a word (an MTU black hole) is so told from one that loses some of all. The kernel
// has no size of a segment that arrived at once, only how many did and how many bytes they had together. Of one that is
// sent again the size is known, and it is followed until it arrives or its connection ends.
type segmentSizes struct {
	table   SocketTable
	from    string // which end the sockets are: server, client
	conns   map[Ends]sending
	before  map[Ends]sending // at the last reading; nil: there was none
	again   []Ends           // connections that send the same again
	hosts   map[sizedPath]*sizedHost
	startNs int64 // of the first reading
	nowNs   int64
	sentSum int64 // segments with data, since then
}

// sizedPath is that of the segments between a client's host and a node.
type sizedPath struct {
	node   string
	client netip.Addr
}

// sizedHost are the sizes of the segments of a path.
type sizedHost struct {
	recording.SegmentSizes
	sinceNs     int64 // they are counted
	seenNs      int64 // when it last had a connection
	lost        lostSegments
	lostNs      int64 // when one was last lost
	passedBytes int64 // the largest that was recorded since
}

// lostSegments are the segments that were lost since the last reading: all at once, as far as is known.
type lostSegments struct {
	times, waitedNs int64
	bytes           int64 // of the smallest that was not lost before; 0: there is none
}

// sending is what a connection sends, at one reading.
type sending struct {
	host      *sizedHost // nil: it is not kept
	acked     uint64     // bytes
	sent      uint32     // segments with data
	delivered uint32     // of them
	resent    uint32     // segments
	mss       uint32
	head      uint32 // bytes of the first segment that is not acknowledged; 0: there is none, or it is not known
	vain      int64  // how many times that was sent again, and had to be sent once more
	waitedNs  int64  // for how long
	lost      bool   // that was counted
}

// headBytes is the size of the first segment that is not acknowledged, 0 where it is not known. A single one is all
// that is not acknowledged. Of several, all but the last are as large as may be, if they would not fit into one less:
// so TCP cuts what a process writes.
func (s *Socket) headBytes() uint32 {
	bytes := s.SendQ - min(s.NotsentBytes, s.SendQ)
	switch {
	case s.Unacked == 1:
		return min(bytes, s.SendMSS)
	case s.Unacked > 1 && uint64(bytes) > uint64(s.Unacked-1)*uint64(s.SendMSS):
		return s.SendMSS
	}
	return 0
}

// sendsAgain reports whether the timer has sent the first segment again, and not to probe a closed window.
func (s *Socket) sendsAgain() bool {
	return s.Timer == retransmissionTimer && s.Retransmits > 0 && s.headBytes() > 0
}

// begin begins a reading.
func (t *segmentSizes) begin(nowNs int64) {
	if t.conns == nil {
		t.startNs = nowNs
	}
	t.before, t.conns = t.conns, t.before
	if t.conns == nil {
		t.conns = map[Ends]sending{}
	}
	clear(t.conns)
	t.nowNs, t.again = nowNs, t.again[:0]
}

// add takes a connection with a node.
func (t *segmentSizes) add(s *Socket, node string) {
	if !s.HasInfo {
		return
	}
	before := t.before[Ends{s.Local, s.Remote}]
	if before.host == nil {
		before.host = t.host(s, node)
	}
	if before.host != nil {
		before.host.seenNs = t.nowNs
	}
	if before.sent > 0 {
		t.sentSum += int64(max(s.DataSegsOut, before.sent) - before.sent)
	}
	t.read(s, before, t.before != nil)
}

// follow reads once more, between two readings, the connections that send something again.
func (t *segmentSizes) follow(nowNs int64) {
	if len(t.again) == 0 {
		return
	}
	t.nowNs = nowNs
	again := t.again
	t.again = nil // those that are gone are not found
	_ = t.table.Find(again, func(s *Socket) {
		if before, ok := t.conns[Ends{s.Local, s.Remote}]; ok && s.HasInfo {
			t.read(s, before, true)
		}
	})
}

// read takes a connection as it is now, and counts what it has sent since it was read before.
func (t *segmentSizes) read(s *Socket, before sending, counts bool) {
	ends := Ends{s.Local, s.Remote}
	now := sending{
		host: before.host, acked: s.BytesAcked, sent: s.DataSegsOut, delivered: s.Delivered, resent: s.TotalRetrans,
		mss: s.SendMSS, head: s.headBytes(),
	}
	if s.sendsAgain() { // what was sent again once may have arrived
		now.vain, now.waitedNs = int64(s.Retransmits)-1, s.resendingNs()
		if len(t.again) < maxFollowed {
			t.again = append(t.again, ends)
		}
	}
	if now.delivered < before.delivered || now.acked < before.acked {
		before = sending{} // another one with the same ports
	}
	now.lost = before.lost && now.acked == before.acked // the same segment
	if counts && now.host != nil {
		now.passed(before)
		// Of what was sent before the watch it is not known what else was lost then.
		if now.vain > 0 && now.waitedNs <= t.nowNs-t.startNs && s.AckedAgoNs-now.waitedNs < forgetsAfter {
			now.loses(before)
		}
	}
	t.conns[ends] = now
}

// passed counts what was acknowledged, of which the largest segment is at least as large as their mean.
func (s *sending) passed(before sending) {
	acked, delivered := int64(s.acked-before.acked), int64(s.delivered-before.delivered)
	if acked == 0 {
		return
	}
	largest := int64(0)
	if delivered > 0 {
		largest = (acked + delivered - 1) / delivered
	}
	if acked >= int64(before.head) {
		largest = max(largest, int64(before.head))
	}
	once := max(delivered-int64(s.resent-before.resent), 0)
	s.host.Pass(once, min(largest, int64(s.mss)), min(acked, once*int64(s.mss)))
}

// loses counts how many times the first segment was sent again in vain, and for how long.
func (s *sending) loses(before sending) {
	l := &s.host.lost
	if !s.lost {
		s.lost, before.vain, before.waitedNs = true, 0, 0
		if head := int64(s.head); l.bytes == 0 || head < l.bytes {
			l.bytes = head
		}
	}
	l.times += max(s.vain-before.vain, 0)
	l.waitedNs += max(s.waitedNs-before.waitedNs, 0)
}

// host are the sizes of the path of a socket; nil where they are not kept.
func (t *segmentSizes) host(s *Socket, node string) *sizedHost {
	path := sizedPath{node, unmapped(s.Remote).Addr()}
	if t.from == recording.Client {
		path.client = unmapped(s.Local).Addr()
	}
	h := t.hosts[path]
	if h == nil && len(t.hosts) < maxSizedHosts {
		h = &sizedHost{sinceNs: t.nowNs}
		h.Client, h.From = path.client.String(), t.from
		if t.hosts == nil {
			t.hosts = map[sizedPath]*sizedHost{}
		}
		t.hosts[path] = h
	}
	return h
}

// end ends a reading, and records what is lost, and larger segments that pass nevertheless.
func (t *segmentSizes) end(sink recording.Sink) {
	for path, h := range t.hosts {
		h.loseAll(t.nowNs)
		switch larger := h.lostNs > 0 && t.nowNs-h.lostNs < sizesLast && h.PassedBytes > h.passedBytes; {
		case h.WaitedNs > 0 || larger:
			d := h.Take()
			h.passedBytes = max(h.passedBytes, d.PassedBytes)
			sink.Event(recording.Event{
				TimeNs: h.sinceNs, DurationNs: t.nowNs - h.sinceNs, Source: recording.SourceHost, Subject: path.node,
				Kind: recording.KindSegmentSizes, Detail: recording.Detail(d),
			})
			h.sinceNs = t.nowNs
		case t.nowNs-h.sinceNs < sizesLast:
		case h.seenNs < t.nowNs:
			delete(t.hosts, path)
		default:
			h.Take()
			h.sinceNs, h.passedBytes = t.nowNs, 0
		}
	}
}

// loseAll counts what was lost. What was lost before says nothing new about its size.
func (h *sizedHost) loseAll(nowNs int64) {
	l := h.lost
	if h.lost = (lostSegments{}); l.times > 0 {
		h.lostNs = nowNs
	}
	if l.bytes > 0 {
		h.Lose(l.times, l.bytes, l.waitedNs)
		return
	}
	h.Lost, h.WaitedNs = h.Lost+l.times, h.WaitedNs+l.waitedNs
}
