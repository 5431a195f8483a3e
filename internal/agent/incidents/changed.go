package incidents

import (
	"slices"
	"time"
)

// nextChange is now, and later than the last change. s.mu is held.
func (s *Store) nextChange() time.Time {
	last := time.Time{}
	for _, k := range s.all {
		last = maxTime(last, k.Changed)
	}
	return maxTime(s.now().UTC(), last.Add(1))
}

// ChangedSince are the incidents that were changed after a time, at most so many, in the order of their last change.
func (s *Store) ChangedSince(after time.Time, most int) (out []Incident) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		if k.Changed.After(after) {
			out = append(out, k.Incident)
		}
	}
	slices.SortFunc(out, func(a, b Incident) int { return a.Changed.Compare(b.Changed) })
	return out[:min(len(out), most)]
}
