package live

import (
	"slices"

	"slowpath/internal/recording"
)

// wholeOf are the parts of a call, ordered and disjoint, with what they leave open: together they are the call. segs
// are ordered, as a source writes them.
func wholeOf(c recording.Call, segs []recording.Segment) []recording.Segment {
	out := make([]recording.Segment, 0, len(segs)+1)
	at := c.IntendedNs
	open := func(to int64) {
		if to > at {
			out = append(out, recording.Segment{
				Actor: recording.Nobody, State: recording.Unexplained, FromNs: at, ToNs: to,
			})
		}
	}
	for _, s := range segs {
		if s.FromNs, s.ToNs = max(s.FromNs, at), min(s.ToNs, c.EndNs); s.ToNs <= s.FromNs {
			continue
		}
		open(s.FromNs)
		out, at = append(out, s), s.ToNs
	}
	open(c.EndNs)
	return coarse(out)
}

// coarse has at most maxParts of the parts of a call, which follow each other: where there are more, neighbours in one
// state become one with the culprit of the longest, and then the shortest ones join those before them.
func coarse(parts []recording.Segment) []recording.Segment {
	if len(parts) <= maxParts {
		return parts
	}
	ns := func(s recording.Segment) int64 { return s.ToNs - s.FromNs }
	out, longest := parts[:1], ns(parts[0])
	for _, s := range parts[1:] {
		last := &out[len(out)-1]
		if last.Actor != s.Actor || last.State != s.State {
			out, longest = append(out, s), ns(s)
			continue
		}
		if ns(s) > longest {
			last.Culprit, longest = s.Culprit, ns(s)
		}
		last.ToNs = s.ToNs
	}
	if len(out) > maxParts {
		lengths := make([]int64, len(out))
		for i, s := range out {
			lengths[i] = ns(s)
		}
		slices.Sort(lengths)
		least := lengths[len(lengths)-maxParts]
		kept := out[:1]
		for _, s := range out[1:] {
			if ns(s) < least || len(kept) == maxParts {
				kept[len(kept)-1].ToNs = s.ToNs
			} else {
				kept = append(kept, s)
			}
		}
		out = kept
	}
	return slices.Clone(out)
}

// Account gives a slow call the parts of its account, which are ordered, disjoint, and add up to it. A call that is not
// kept is left alone.
func (v *View) Account(c recording.Call, segs []recording.Segment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := len(v.slow) - 1; i >= max(len(v.slow)-maxSlow, 0); i-- {
		if same(v.slow[i].Call, c) {
			v.slow[i].Segments = wholeOf(c, segs)
			return
		}
	}
}

// same reports whether two rows are of one call. Numbers of rows differ from sink to sink.
func same(a, b recording.Call) bool {
	return a.EndNs == b.EndNs && a.IntendedNs == b.IntendedNs && a.Source == b.Source && a.Node == b.Node &&
		a.Conn == b.Conn && a.Op == b.Op
}
