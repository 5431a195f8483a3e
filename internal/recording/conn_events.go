package recording

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"
)

// ConnEvent is an open or a close.
type ConnEvent struct {
	TimeNs int64 // since the Unix epoch
	Kind   string
	ConnDetail
}

// HandshakeEvent is a handshake.
type HandshakeEvent struct {
	TimeNs     int64 // begin, since the Unix epoch
	DurationNs int64
	HandshakeDetail
}

// Conns are the opens and closes of connections to a node, or those of these kinds, in order of time.
func (r *Recording) Conns(node string, kinds ...string) iter.Seq[ConnEvent] {
	if len(kinds) == 0 {
		kinds = []string{KindOpen, KindClose}
	}
	return func(yield func(ConnEvent) bool) {
		for p := range r.packed.of(node, kinds) {
			if !yield(r.packed.conn(p)) {
				return
			}
		}
		for e := range r.connEvents(node, kinds) {
			if !yield(ConnEvent{e.TimeNs, e.Kind, DetailOf[ConnDetail](e)}) {
				return
			}
		}
	}
}

// Handshakes are those of new connections to a node, in order of time.
func (r *Recording) Handshakes(node string) iter.Seq[HandshakeEvent] {
	kinds := []string{KindHandshake}
	return func(yield func(HandshakeEvent) bool) {
		for p := range r.packed.of(node, kinds) {
			if !yield(r.packed.handshake(p)) {
				return
			}
		}
		for e := range r.connEvents(node, kinds) {
			if !yield(HandshakeEvent{e.TimeNs, e.DurationNs, DetailOf[HandshakeDetail](e)}) {
				return
			}
		}
	}
}

// connEvents are the rows of kinds about a node.
func (r *Recording) connEvents(node string, kinds []string) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for _, e := range r.Events {
			if e.Source == SourceTap && e.Subject == node && slices.Contains(kinds, e.Kind) && !yield(e) {
				return
			}
		}
	}
}

// connKinds are the kinds of events that begin and end connections.
var connKinds = [...]string{KindOpen, KindHandshake, KindClose}

// ofConns reports whether events of a kind begin or end connections.
func ofConns(kind string) bool { return slices.Contains(connKinds[:], kind) }

// packedEvents are the events of the tap that begin and end connections, in a fraction of the memory of rows, and with
// details that were decoded once: a recording that is judged can have a million. None: nil.
type packedEvents struct {
	byNode map[string][]packedEvent
	count  int
	endNs  int64 // of the one that ended last
	chunks [][]byte
	// texts and lists have a number in the chunks: most come again and again
	texts   []string
	textNo  map[string]int64
	lists   [][]string
	listsNo map[string]int64 // by their texts
}

func newPackedEvents() *packedEvents {
	return &packedEvents{
		byNode: map[string][]packedEvent{}, textNo: map[string]int64{}, listsNo: map[string]int64{},
	}
}

// packedEvent is what all of them have, and where the rest is in the chunks.
type packedEvent struct {
	timeNs int64
	place  uint32
	kind   uint8 // index in connKinds
}

const (
	chunkBytes = 1 << 16
	// mostPacked is the number of bytes of one event: its numbers are of up to ten.
	mostPacked = 20 * binary.MaxVarintLen64
)

func (p *packedEvents) add(e Event) {
	if n := len(p.chunks); n == 0 || len(p.chunks[n-1]) > chunkBytes-mostPacked {
		p.chunks = append(p.chunks, make([]byte, 0, chunkBytes))
	}
	last := len(p.chunks) - 1
	place := uint32(last*chunkBytes + len(p.chunks[last]))
	kind := uint8(slices.Index(connKinds[:], e.Kind))
	p.byNode[e.Subject] = append(p.byNode[e.Subject], packedEvent{e.TimeNs, place, kind})
	f := fields{packedEvents: p, bytes: p.chunks[last], writes: true}
	if e.Kind == KindHandshake {
		f.ofHandshake(&HandshakeEvent{e.TimeNs, e.DurationNs, DetailOf[HandshakeDetail](e)})
	} else {
		d := DetailOf[ConnDetail](e)
		f.ofConn(&d)
	}
	p.chunks[last] = f.bytes
	p.count++
	p.endNs = max(p.endNs, e.TimeNs+e.DurationNs)
}

// index sorts them by time. None can be added afterwards.
func (p *packedEvents) index() {
	for node, events := range p.byNode {
		sortByTime(events, func(e packedEvent) int64 { return e.timeNs })
		p.byNode[node] = slices.Clip(events)
	}
	p.textNo, p.listsNo = nil, nil
}

// of are those of kinds about a node.
func (p *packedEvents) of(node string, kinds []string) iter.Seq[packedEvent] {
	return func(yield func(packedEvent) bool) {
		if p == nil {
			return
		}
		for _, e := range p.byNode[node] {
			if slices.Contains(kinds, connKinds[e.kind]) && !yield(e) {
				return
			}
		}
	}
}

func (p *packedEvents) rest(e packedEvent) fields {
	return fields{packedEvents: p, bytes: p.chunks[e.place/chunkBytes][e.place%chunkBytes:]}
}

func (p *packedEvents) conn(e packedEvent) ConnEvent {
	out := ConnEvent{TimeNs: e.timeNs, Kind: connKinds[e.kind]}
	f := p.rest(e)
	f.ofConn(&out.ConnDetail)
	return out
}

func (p *packedEvents) handshake(e packedEvent) HandshakeEvent {
	out := HandshakeEvent{TimeNs: e.timeNs}
	f := p.rest(e)
	f.ofHandshake(&out)
	return out
}

// fields writes the fields of an event to its bytes, or reads them from there.
type fields struct {
	*packedEvents
	bytes  []byte
	writes bool
}

func (f *fields) ofConn(d *ConnDetail) {
	for _, t := range [...]*string{&d.Client, &d.Comm, &d.Side, &d.By, &d.Reason, &d.Op, &d.Nagle} {
		f.text(t)
	}
	for _, n := range [...]*int64{
		&d.DialNs, &d.AgeNs, &d.IdleNs, &d.Calls, &d.InFlightNs, &d.OpBytes, &d.NoticedNs, &d.PeerIdleNs,
	} {
		integer(f, n)
	}
	integer(f, &d.PID)
	integer(f, &d.Waiting)
	integer(f, &d.PeerWaiting)
	blocking := 0
	if d.Blocking {
		blocking = 1
	}
	integer(f, &blocking)
	d.Blocking = blocking == 1
}

func (f *fields) ofHandshake(d *HandshakeEvent) {
	for _, t := range [...]*string{&d.Client, &d.Comm, &d.Side, &d.Library, &d.Version, &d.Op} {
		f.text(t)
	}
	for _, n := range [...]*int64{&d.DurationNs, &d.DialNs, &d.TLSNs, &d.IdleNs, &d.Bytes} {
		integer(f, n)
	}
	integer(f, &d.PID)
	integer(f, &d.RoundTrips)
	f.list(&d.Ops)
}

func integer[T int | int64](f *fields, v *T) {
	if f.writes {
		f.bytes = binary.AppendVarint(f.bytes, int64(*v))
		return
	}
	n, size := binary.Varint(f.bytes)
	*v, f.bytes = T(n), f.bytes[size:]
}

func (f *fields) text(v *string) {
	var n int64
	if f.writes {
		n = numberOf(f.textNo, &f.texts, *v, *v)
	}
	integer(f, &n)
	*v = f.texts[n]
}

func (f *fields) list(v *[]string) {
	var n int64
	if f.writes {
		n = numberOf(f.listsNo, &f.lists, strings.Join(*v, "\x00"), *v)
	}
	integer(f, &n)
	*v = f.lists[n]
}

// numberOf is the index of a value, which is added if no other has its key.
func numberOf[T any](numbers map[string]int64, values *[]T, key string, value T) int64 {
	n, known := numbers[key]
	if !known {
		n = int64(len(*values))
		numbers[key], *values = n, append(*values, value)
	}
	return n
}
