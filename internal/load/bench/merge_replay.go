package bench

import (
	"cmp"
	"slices"
)

// replay adds up what the parts replayed, each its own log or all the same one; nil where none did.
func (m *merger) replay() *Replay {
	var sum *Replay
	skipped := map[Skip]int64{} // counts, by command and reason
	for _, p := range m.parts {
		r := p.Result.Replay
		if r == nil {
			continue
		}
		if sum == nil {
			sum = &Replay{Speed: r.Speed, Skipped: []Skip{}, Notes: []string{}}
		}
		sum.Requests += r.Requests
		sum.Sent += r.Sent
		sum.Clients += r.Clients
		sum.LengthNs = max(sum.LengthNs, r.LengthNs)
		for _, s := range r.Skipped {
			skipped[Skip{Command: s.Command, Why: s.Why}] += s.Count
		}
		for _, n := range r.Notes {
			if !slices.Contains(sum.Notes, n) {
				sum.Notes = append(sum.Notes, n)
			}
		}
	}
	for s, n := range skipped {
		s.Count = n
		sum.Skipped = append(sum.Skipped, s)
	}
	if sum != nil {
		slices.SortFunc(sum.Skipped, func(a, b Skip) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Command, b.Command), cmp.Compare(a.Why, b.Why))
		})
	}
	return sum
}

// replaySpeed is compared between the parts.
func replaySpeed(r *Result) any {
	if r.Replay == nil {
		return "none"
	}
	return r.Replay.Speed
}
