package recording

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// partsOf holds the segments of one call as numbers of variable length: the place of its part in Recording.parts, the
// begin after the end of the segment before, and the length. Calls that waited in the same stall have hundreds of
// segments each.
type partsOf struct {
	packed []byte
	fromNs int64 // of the last
	toNs   int64
	mixed  bool // they are not in order of their begin
}

// part is what a segment is without its time.
type part struct{ actor, state, culprit string }

// addSegment adds a segment to a call.
func (r *Recording) addSegment(call int64, s Segment) {
	k := part{s.Actor, s.State, s.Culprit}
	place, known := r.placeOf[k]
	if !known {
		place = uint64(len(r.parts))
		r.placeOf[k] = place
		r.parts = append(r.parts, k)
	}
	p := r.segments[call]
	if p == nil {
		p = &partsOf{}
		r.segments[call] = p
	}
	p.mixed = p.mixed || len(p.packed) > 0 && s.FromNs < p.fromNs
	p.packed = binary.AppendUvarint(p.packed, place)
	p.packed = binary.AppendVarint(p.packed, s.FromNs-p.toNs)
	p.packed = binary.AppendVarint(p.packed, s.ToNs-s.FromNs)
	p.fromNs, p.toNs = s.FromNs, s.ToNs
}

// sortSegments orders the segments of each call by their begin.
func (r *Recording) sortSegments() {
	for call, p := range r.segments {
		if p.mixed {
			segs := r.SegmentsOf(call)
			slices.SortStableFunc(segs, func(a, b Segment) int { return cmp.Compare(a.FromNs, b.FromNs) })
			r.SetSegments(call, segs)
		}
	}
}

// OwnDelayNs is the part of a call of the probe in which slowpath's own process was late, in nanoseconds, by the
// segments that the probe measured. It is in no latency (docs/decisions/0006-observers-own-delay.md).
func OwnDelayNs(c Call, segs []Segment) (ns int64) {
	if c.Source != SourceProbe {
		return 0
	}
	for _, s := range segs {
		if s.Actor == Client && s.State == RunQueue {
			ns += max(min(s.ToNs, c.EndNs)-max(s.FromNs, c.IntendedNs), 0)
		}
	}
	return min(ns, c.EndNs-c.IntendedNs)
}

// SegmentsOf are the segments of the call of an id, in the order in which they were added.
func (r *Recording) SegmentsOf(call int64) []Segment {
	p := r.segments[call]
	if p == nil {
		return nil
	}
	out := make([]Segment, 0, len(p.packed)/6) // about as many
	at := int64(0)
	for b := p.packed; len(b) > 0; {
		place, n := binary.Uvarint(b)
		gap, m := binary.Varint(b[n:])
		ns, l := binary.Varint(b[n+m:])
		b = b[n+m+l:]
		from := at + gap
		at = from + ns
		k := r.parts[place]
		out = append(out, Segment{call, k.actor, k.state, from, at, k.culprit})
	}
	return out
}

// SetSegments replaces the segments of the call of an id.
func (r *Recording) SetSegments(call int64, segs []Segment) {
	delete(r.segments, call)
	for _, s := range segs {
		r.addSegment(call, s)
	}
	if p := r.segments[call]; p != nil {
		p.packed = slices.Clip(p.packed)
	}
}
