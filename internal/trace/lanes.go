package trace

// lanes assigns each span the lowest free lane, so that overlapping spans are in different lanes. Spans must come in
// the order of their begin.
type lanes struct{ freeFrom []int64 }

func (s *lanes) take(from, to int64) int {
	for i, free := range s.freeFrom {
		if free <= from {
			s.freeFrom[i] = to
			return i
		}
	}
	s.freeFrom = append(s.freeFrom, to)
	return len(s.freeFrom) - 1
}
