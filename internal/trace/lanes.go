package trace

// slots gives each of a row of spans the lowest place that is free, so that those which overlap lie in different
// places. Spans must come in the order in which they begin.
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
