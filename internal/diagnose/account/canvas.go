package account

import "slices"

// canvas is the time of one call as an ordered list of segments without gaps or overlaps. Every operation keeps it a
// partition.
type canvas struct {
	from, to int64
	segs     []Segment
}

func newCanvas(from, to int64) *canvas {
	return &canvas{from, to, []Segment{{Nobody, Unexplained, from, to, "", -1}}}
}

// lay puts s over those parts of [s.FromNs, s.ToNs) whose present segment may be replaced.
func (c *canvas) lay(s Segment, may func(Segment) bool) int64 {
	var out []Segment
	var laid int64
	for _, g := range c.segs {
		from, to := max(g.FromNs, s.FromNs), min(g.ToNs, s.ToNs)
		if from >= to || !may(g) {
			out = append(out, g)
			continue
		}
		if g.FromNs < from {
			out = append(out, cut(g, g.FromNs, from))
		}
		out = append(out, cut(s, from, to))
		laid += to - from
		if to < g.ToNs {
			out = append(out, cut(g, to, g.ToNs))
		}
	}
	c.segs = out
	return laid
}

// replace gives every segment that matches another actor, state and culprit.
func (c *canvas) replace(s Segment, match func(Segment) bool) {
	for i, g := range c.segs {
		if match(g) {
			c.segs[i] = cut(s, g.FromNs, g.ToNs)
		}
	}
}

// accuse marks up to ns of the matching segments in [from, to) as spent on a suspect, the latest first: a call that
// waits behind a command ends when the command does. It returns how much was marked. Segments that were already the
// server's keep their state.
func (c *canvas) accuse(from, to, ns int64, index int, s Suspect, match func(Segment) bool) int64 {
	left := ns
	for i := len(c.segs) - 1; i >= 0 && left > 0; i-- {
		g := c.segs[i]
		lo, hi := max(g.FromNs, from), min(g.ToNs, to)
		if lo >= hi || !match(g) {
			continue
		}
		lo = max(lo, hi-left)
		state := g.State
		if g.Actor != Server {
			state = stateOf(s)
		}
		left -= c.lay(Segment{Server, state, lo, hi, s.Text, index}, match)
	}
	return ns - left
}

func stateOf(s Suspect) string {
	if s.Kind == KindFork || s.Kind == KindAOF {
		return Blocked
	}
	return Busy
}

// has reports whether any of the time is known to be in a state.
func (c *canvas) has(actor, state string) bool {
	return slices.ContainsFunc(c.segs, func(s Segment) bool { return s.Actor == actor && s.State == state })
}

// take lays s over the first ns of open time, takeLast over the last.
func (c *canvas) take(ns int64, s Segment) {
	for i := 0; i < len(c.segs) && ns > 0; i++ {
		if g := c.segs[i]; isOpen(g) {
			s.FromNs, s.ToNs = g.FromNs, min(g.ToNs, g.FromNs+ns)
			ns -= c.lay(s, isOpen)
		}
	}
}

func (c *canvas) takeLast(ns int64, s Segment) {
	for i := len(c.segs) - 1; i >= 0 && ns > 0; i-- {
		if g := c.segs[i]; isOpen(g) {
			s.FromNs, s.ToNs = max(g.FromNs, g.ToNs-ns), g.ToNs
			ns -= c.lay(s, isOpen)
		}
	}
}

// segments is the partition with equal neighbours joined.
func (c *canvas) segments() []Segment {
	var out []Segment
	for _, g := range c.segs {
		if n := len(out) - 1; n >= 0 && out[n].Actor == g.Actor && out[n].State == g.State &&
			out[n].Culprit == g.Culprit && out[n].Suspect == g.Suspect {
			out[n].ToNs = g.ToNs
			continue
		}
		out = append(out, g)
	}
	return out
}

func cut(s Segment, from, to int64) Segment {
	s.FromNs, s.ToNs = from, to
	return s
}
