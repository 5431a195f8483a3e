package mainthread

import (
	"cmp"
	"maps"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
)

// SuspectClaim is the time that slow calls waited while the event loop did something else, with what it did.
type SuspectClaim struct {
	facts.Claim
	// Suspects are what it did, each once, those that were waited for longest first.
	Suspects []account.Suspect
	// Own are those of Calls that are such work themselves: these do not wait for it.
	Own int
	// MaxWaitNs is the most that is explained of one call that is not, in nanoseconds.
	MaxWaitNs int64
}

// ClaimOfSuspects claims the time that slow calls waited for suspects that match.
func ClaimOfSuspects(n *facts.Node, match func(account.Suspect) bool) SuspectClaim {
	return ClaimOfSuspectsExcept(n, match, nil)
}

// ClaimOfSuspectsExcept does so without the nanoseconds that less finds of another cause in each segment.
func ClaimOfSuspectsExcept(n *facts.Node, match func(account.Suspect) bool,
	less func(account.Segment) int64,
) SuspectClaim {
	w := WaitsForSuspects(n, match)
	w.less = less
	return w.Claim(n.ClaimOf(w.OfCall))
}

// ClaimOfKind claims the time that slow calls waited for commands of a kind.
func ClaimOfKind(n *facts.Node, kind Kind) SuspectClaim {
	return ClaimOfSuspects(n, func(s account.Suspect) bool { return KindOf(n, s) == kind })
}

// SuspectWaits adds up for which suspects slow calls waited.
type SuspectWaits struct {
	n     *facts.Node
	match func(account.Suspect) bool
	known map[int]bool // match may be costly, and a suspect has many segments
	byNs  map[int]int64
	room  map[int]int64 // memory of OfCall
	less  func(account.Segment) int64
}

// WaitsForSuspects begins a sum over suspects that match.
func WaitsForSuspects(n *facts.Node, match func(account.Suspect) bool) *SuspectWaits {
	return &SuspectWaits{n: n, match: match, known: map[int]bool{}, byNs: map[int]int64{}, room: map[int]int64{}}
}

// Matches reports whether the suspect of an index matches; -1 does not.
func (w *SuspectWaits) Matches(i int) bool {
	if i < 0 {
		return false
	}
	matches, asked := w.known[i]
	if !asked {
		matches = w.match(w.n.Ledger.Suspects[i])
		w.known[i] = matches
	}
	return matches
}

// OfCall is the time that one call waited. The time of a command is by the clock: where its thread was
// off the CPU meanwhile, whoever waits for the command waits for that too.
func (w *SuspectWaits) OfCall(a account.Account) (times facts.StateTimes) {
	var inside int64
	room := w.room // by how much more than this the suspects may have lasted
	clear(room)
	for i := range a.Segments {
		s := &a.Segments[i]
		if s.Actor == account.Server && s.State == account.RunQueue && w.interrupted(a.Segments, i) {
			times.Add(*s, s.Ns())
			inside += s.Ns()
			continue
		}
		if !w.Matches(s.Suspect) {
			continue
		}
		ns := s.Ns()
		if w.less != nil {
			ns -= w.less(*s)
		}
		times.Add(*s, ns)
		w.byNs[s.Suspect] += ns
		p := &w.n.Ledger.Suspects[s.Suspect]
		if _, seen := room[s.Suspect]; !seen && includesRunQueue(*p) {
			room[s.Suspect] = p.DurationNs * int64(max(p.Count, 1))
		}
		room[s.Suspect] -= s.Ns()
	}
	var more int64
	for _, left := range room {
		more += max(left, 0)
	}
	times.AddAnywhere(account.Server, account.RunQueue, min(a.In(account.Server, account.RunQueue)-inside, more))
	return times
}

// interrupted reports whether the server was at work on suspects right before and after a segment.
func (w *SuspectWaits) interrupted(segments []account.Segment, i int) bool {
	return i > 0 && i+1 < len(segments) && w.Matches(segments[i-1].Suspect) && w.Matches(segments[i+1].Suspect)
}

// includesRunQueue reports whether the duration of a suspect includes its waits for a CPU. That is so of all that the
// server measures itself; but a command is believed only where the thread was not kept from running for most of it.
func includesRunQueue(s account.Suspect) bool {
	switch s.Kind {
	case account.KindExpire, account.KindFork:
		return true
	case account.KindCommand, account.KindFree:
		return (s.Busy || !s.Stopped) && s.DurationNs >= account.MinSeenBusyNs
	}
	return false
}

// own are the slow calls that are suspects themselves, by their place in the ledger.
func (w *SuspectWaits) own() map[int]bool {
	out := map[int]bool{}
	for i, a := range w.n.Ledger.Slow {
		if a.Call.Node == w.n.Address && slices.ContainsFunc(a.Segments, func(s account.Segment) bool {
			return s.Actor == account.Server && s.State == account.Exec && w.Matches(s.Suspect)
		}) {
			out[w.n.Ledger.Root(i)] = true
		}
	}
	return out
}

// Claim joins a claim with the suspects that were waited for.
func (w *SuspectWaits) Claim(cl facts.Claim) SuspectClaim {
	h := SuspectClaim{Claim: cl}
	own := w.own()
	for _, c := range cl.PerCall {
		switch {
		case !own[c.Index]:
			h.MaxWaitNs = max(h.MaxWaitNs, int64(c.Ns))
		case c.Ns >= degree.Part*float64(w.n.Ledger.Slow[c.Index].ExcessNs):
			h.Own++
		}
	}
	for _, i := range slices.SortedFunc(maps.Keys(w.byNs), func(a, b int) int {
		return cmp.Or(cmp.Compare(w.byNs[b], w.byNs[a]), cmp.Compare(a, b))
	}) {
		h.Suspects = append(h.Suspects, w.n.Ledger.Suspects[i])
	}
	return h
}
