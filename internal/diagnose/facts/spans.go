package facts

import (
	"slices"
	"sort"
)

// Span is a stretch of time.
type Span struct {
	// FromNs is its begin, in nanoseconds since the Unix epoch.
	FromNs int64
	// ToNs is its end.
	ToNs int64
}

// Spans are stretches of time, disjoint and in order.
type Spans []Span

// MergeSpans sorts stretches of time and joins those that overlap.
func MergeSpans(list Spans) Spans {
	sort.Slice(list, func(i, j int) bool { return list[i].FromNs < list[j].FromNs })
	var out Spans
	for _, s := range list {
		if k := len(out) - 1; k >= 0 && s.FromNs <= out[k].ToNs {
			out[k].ToNs = max(out[k].ToNs, s.ToNs)
			continue
		}
		out = append(out, s)
	}
	return out
}

// OverlapNs is how much of [from, to) they cover, in nanoseconds.
func (s Spans) OverlapNs(from, to int64) (ns int64) {
	for i := sort.Search(len(s), func(i int) bool { return s[i].ToNs > from }); i < len(s) && s[i].FromNs < to; i++ {
		ns += min(s[i].ToNs, to) - max(s[i].FromNs, from)
	}
	return ns
}

// Has reports whether one of them has a time.
func (s Spans) Has(at int64) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].ToNs >= at })
	return i < len(s) && s[i].FromNs <= at
}

// TotalNs is how long they are together, in nanoseconds.
func (s Spans) TotalNs() (ns int64) {
	for _, x := range s {
		ns += x.ToNs - x.FromNs
	}
	return ns
}

// Overlap is how much of a stretch of time some stretches cover, in nanoseconds, each for itself.
func Overlap(stalls []Span, with Span) int64 {
	var ns int64
	for _, s := range stalls {
		ns += max(0, min(s.ToNs, with.ToNs)-max(s.FromNs, with.FromNs))
	}
	return ns
}

// MaxOverlap is how many of some stretches, which are sorted by their begin, overlap at most.
func MaxOverlap(list []Span) (most int) {
	ends := make([]int64, len(list))
	for i, s := range list {
		ends[i] = s.ToNs
	}
	slices.Sort(ends)
	ended := 0
	for i, s := range list {
		for ends[ended] <= s.FromNs {
			ended++
		}
		most = max(most, i+1-ended)
	}
	return most
}
