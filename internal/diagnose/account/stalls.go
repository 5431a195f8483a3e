package account

import (
	"cmp"
	"slices"
)

// Stalls are the times in which calls to a node were slow. One that holds up a hundred callers is one stall: calls that
// overlap are no measurements of their own.
type Stalls struct {
	Count   int
	LostNs  int64 // excess of all slow calls, in nanoseconds of their callers
	WorstNs int64 // the longest call
}

// Stalls are those of the slow calls that have an account.
func (l *Ledger) Stalls() (out Stalls) {
	type span struct{ from, to int64 }
	byNode := map[string][]span{}
	for _, a := range l.Slow {
		if a.IsPart() {
			continue
		}
		byNode[a.Call.Node] = append(byNode[a.Call.Node], span{a.Call.IntendedNs, a.Call.EndNs})
		out.LostNs += a.ExcessNs
		out.WorstNs = max(out.WorstNs, a.FeltNs())
	}
	for _, spans := range byNode {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		endNs := int64(0)
		for i, s := range spans {
			if i == 0 || s.from > endNs {
				out.Count++
			}
			endNs = max(endNs, s.to)
		}
	}
	return out
}
