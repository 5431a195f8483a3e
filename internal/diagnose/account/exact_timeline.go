package account

import "slowpath/internal/recording"

// timeline is what the main thread of a node did and waited for, ordered and disjoint, with the suspects among it.
func (t *mainThread) timeline(node string, suspects []Suspect) []Segment {
	suspectAt := map[int64]int{}
	for i, s := range suspects {
		if s.Source == recording.SourceTap && s.Node == node {
			suspectAt[s.FromNs] = i
		}
	}
	works := make([]Segment, 0, len(t.works))
	for _, w := range t.works {
		s := Segment{Server, Busy, w.TimeNs, w.TimeNs + w.DurationNs, workText(w.ActivityDetail), -1}
		if i, ok := suspectAt[w.TimeNs]; ok {
			s.State, s.Culprit, s.Suspect = suspects[i].state(), suspects[i].Text, i
		}
		works = append(works, s)
	}
	return withWaits(disjoint(works), t.waits)
}

// withWaits cuts the waits out of the work during which they were: a thread that waits does nothing.
func withWaits(works, waits []Segment) []Segment {
	out := make([]Segment, 0, len(waits)+len(works))
	i, end := 0, int64(-1<<62)
	for _, w := range works {
		for i < len(waits) && waits[i].ToNs <= w.FromNs {
			out = append(out, waits[i])
			end = waits[i].ToNs
			i++
		}
		at := max(w.FromNs, end)
		for i < len(waits) && waits[i].FromNs < w.ToNs {
			if waits[i].FromNs > at {
				out = append(out, cut(w, at, waits[i].FromNs))
			}
			out = append(out, waits[i])
			at = waits[i].ToNs
			end = at
			i++
		}
		if at < w.ToNs {
			out = append(out, cut(w, at, w.ToNs))
		}
	}
	return append(out, waits[i:]...)
}
