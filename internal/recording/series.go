package recording

import "sort"

// At gives the value in force at a time: that of the last point not after it. Before the first point it is the first
// value.
func (s Series) At(timeNs int64) (float64, bool) {
	if len(s) == 0 {
		return 0, false
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].TimeNs > timeNs })
	if i == 0 {
		return s[0].Value, true
	}
	return s[i-1].Value, true
}

// Last gives the newest value.
func (s Series) Last() (float64, bool) {
	if len(s) == 0 {
		return 0, false
	}
	return s[len(s)-1].Value, true
}

// Max gives the largest value.
func (s Series) Max() (float64, bool) {
	if len(s) == 0 {
		return 0, false
	}
	m := s[0].Value
	for _, p := range s {
		m = max(m, p.Value)
	}
	return m, true
}

// Min gives the smallest value.
func (s Series) Min() (float64, bool) {
	if len(s) == 0 {
		return 0, false
	}
	m := s[0].Value
	for _, p := range s {
		m = min(m, p.Value)
	}
	return m, true
}

// Growth is by how much a counter rose over the whole recording. A fall means that the counter was reset (a restart,
// CONFIG RESETSTAT): its new value is counted from zero.
func (s Series) Growth() float64 {
	total := 0.0
	for i := 1; i < len(s); i++ {
		if d := s[i].Value - s[i-1].Value; d >= 0 {
			total += d
		} else {
			total += s[i].Value
		}
	}
	return total
}

// Step is the rise of a counter between two of its points.
type Step struct {
	FromNs, ToNs int64
	Delta        float64
}

// Steps lists the rises of a counter, without those across a reset.
func (s Series) Steps() []Step {
	var out []Step
	for i := 1; i < len(s); i++ {
		if d := s[i].Value - s[i-1].Value; d > 0 {
			out = append(out, Step{s[i-1].TimeNs, s[i].TimeNs, d})
		}
	}
	return out
}
