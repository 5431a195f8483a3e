package account

import (
	"slices"
	"sort"
)

// timeline is the time of one call as an ordered list of segments without gaps or overlaps. Every operation keeps it a
// partition.
type timeline struct {
	from, to int64
	segs     []Segment
	scratch  []Segment // memory of overlay
}

// rule says what becomes of a part of a timeline where new evidence lies over it: the segment that takes its place,
// false where it stays as it is.
type rule func(present, evidence Segment) (Segment, bool)

func newTimeline(from, to int64) *timeline {
	return &timeline{from: from, to: to, segs: []Segment{{Nobody, Unexplained, from, to, "", -1}}}
}

// put replaces those parts of [s.FromNs, s.ToNs) by s whose present segment may be replaced. It returns how much that
// was, in nanoseconds.
func (t *timeline) put(s Segment, may func(present Segment) bool) (placed int64) {
	t.overlay([]Segment{s}, func(present, _ Segment) (Segment, bool) {
		if !may(present) {
			return s, false
		}
		placed += min(present.ToNs, s.ToNs) - max(present.FromNs, s.FromNs)
		return s, true
	})
	return placed
}

// putFirst puts s over the first ns of the time that may be replaced, putLast over the last.
func (t *timeline) putFirst(ns int64, s Segment, may func(present Segment) bool) {
	for i := 0; i < len(t.segs) && ns > 0; i++ {
		if g := t.segs[i]; may(g) {
			s.FromNs, s.ToNs = g.FromNs, min(g.ToNs, g.FromNs+ns)
			ns -= t.put(s, may)
		}
	}
}

func (t *timeline) putLast(ns int64, s Segment, may func(present Segment) bool) {
	for i := len(t.segs) - 1; i >= 0 && ns > 0; i-- {
		if g := t.segs[i]; may(g) {
			s.FromNs, s.ToNs = max(g.FromNs, g.ToNs-ns), g.ToNs
			ns -= t.put(s, may)
		}
	}
}

// overlay lays an ordered and disjoint line over the timeline, by a rule.
func (t *timeline) overlay(line []Segment, becomes rule) {
	if len(line) == 0 {
		return
	}
	first, after := t.touching(line[0].FromNs, line[len(line)-1].ToNs)
	out := t.scratch[:0]
	for _, g := range t.segs[first:after] {
		at := g.FromNs
		i := sort.Search(len(line), func(i int) bool { return line[i].ToNs > g.FromNs })
		for ; i < len(line) && line[i].FromNs < g.ToNs; i++ {
			s, ok := becomes(g, line[i])
			if !ok {
				continue
			}
			from, to := max(line[i].FromNs, g.FromNs), min(line[i].ToNs, g.ToNs)
			if at < from {
				out = append(out, cut(g, at, from))
			}
			out = append(out, cut(s, from, to))
			at = to
		}
		if at < g.ToNs {
			out = append(out, cut(g, at, g.ToNs))
		}
	}
	t.segs, t.scratch = slices.Replace(t.segs, first, after, out...), out
}

// touching are the segments [first, after) that overlap [fromNs, toNs).
func (t *timeline) touching(fromNs, toNs int64) (first, after int) {
	if fromNs >= toNs {
		return 0, 0
	}
	first = sort.Search(len(t.segs), func(i int) bool { return t.segs[i].ToNs > fromNs })
	for after = first; after < len(t.segs) && t.segs[after].FromNs < toNs; after++ {
	}
	return first, after
}

// replace gives every segment that matches another actor, state and culprit.
func (t *timeline) replace(s Segment, match func(Segment) bool) {
	for i, g := range t.segs {
		if match(g) {
			t.segs[i] = cut(s, g.FromNs, g.ToNs)
		}
	}
}

// attribute marks up to ns of the matching segments in the window of a suspect as spent on it, the latest first: a call
// that waits behind a command ends when the command does. It returns how much was marked. Segments that were already
// the server's keep their state.
func (t *timeline) attribute(s Suspect, index int, ns int64, match func(Segment) bool) int64 {
	left := ns
	for i := len(t.segs) - 1; i >= 0 && left > 0; i-- {
		g := t.segs[i]
		from, to := max(g.FromNs, s.FromNs), min(g.ToNs, s.ToNs)
		if from >= to || !match(g) {
			continue
		}
		from = max(from, to-left)
		state := g.State
		if g.Actor != Server {
			state = s.state()
		}
		left -= t.put(Segment{Server, state, from, to, s.Text, index}, match)
	}
	return ns - left
}

// has reports whether any of the time is known to be in a state.
func (t *timeline) has(actor, state string) bool {
	return slices.ContainsFunc(t.segs, func(s Segment) bool { return s.Actor == actor && s.State == state })
}

// segments is the partition with equal neighbours joined.
func (t *timeline) segments() []Segment {
	out := t.segs[:0]
	for _, g := range t.segs {
		if n := len(out) - 1; n >= 0 && out[n].Actor == g.Actor && out[n].State == g.State &&
			out[n].Culprit == g.Culprit && out[n].Suspect == g.Suspect {
			out[n].ToNs = g.ToNs
			continue
		}
		out = append(out, g)
	}
	t.segs = out
	return slices.Clone(out) // there are many calls: not longer than it is
}
