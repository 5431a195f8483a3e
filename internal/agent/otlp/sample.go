package otlp

import (
	"cmp"
	"slices"

	"slowpath/internal/live"
)

// sampled is a slow call and its ids.
type sampled struct {
	live.SlowCall
	callIDs
}

// sample is the slow calls of a time, of which those with the highest randomness are kept. Agents that see the same
// calls keep the same ones, as far as their budgets allow.
type sample struct {
	calls     []sampled // twice most, at most
	most      int
	threshold uint64 // whose randomness is below it was left out
	left      int
}

func (s *sample) add(c sampled) {
	if randomness(c.trace) < s.threshold {
		s.left++
		return
	}
	s.calls = append(s.calls, c)
	if len(s.calls) >= 2*s.most {
		s.cut(s.most)
	}
}

// cut keeps as many calls. The threshold is then just above the highest randomness that was left out.
func (s *sample) cut(most int) {
	if len(s.calls) <= most {
		return
	}
	slices.SortFunc(s.calls, func(a, b sampled) int { return cmp.Compare(randomness(b.trace), randomness(a.trace)) })
	s.threshold = randomness(s.calls[most].trace) + 1
	s.left += len(s.calls) - most
	s.calls = s.calls[:most]
	for len(s.calls) > 0 && randomness(s.calls[len(s.calls)-1].trace) < s.threshold { // the same call twice
		s.calls = s.calls[:len(s.calls)-1]
		s.left++
	}
}

// take gives at most so many calls, in the order in which they ended, the threshold of all of them, and how many were
// left out. The next time begins.
func (s *sample) take(most int) (calls []sampled, threshold uint64, left int) {
	s.cut(most)
	calls, threshold, left = s.calls, s.threshold, s.left
	*s = sample{most: s.most}
	slices.SortFunc(calls, func(a, b sampled) int { return cmp.Compare(a.Number, b.Number) })
	return calls, threshold, left
}
