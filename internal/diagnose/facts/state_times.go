package facts

import "slowpath/internal/diagnose/account"

// StateTime is time in a state of an account, in nanoseconds.
type StateTime struct {
	Actor, State string
	Ns           float64
}

// StateTimes is what something explains of a call, by the states in which that time passed: each once.
type StateTimes []StateTime

// Add adds the part of a segment that is explained, in nanoseconds.
func (t *StateTimes) Add(s account.Segment, ns int64) { t.add(s.Actor, s.State, float64(ns)) }

func (t *StateTimes) add(actor, state string, ns float64) {
	if ns == 0 {
		return
	}
	for i := range *t {
		if of := &(*t)[i]; of.State == state && of.Actor == actor {
			of.Ns += ns
			return
		}
	}
	*t = append(*t, StateTime{actor, state, ns})
}

// AddAll adds other times.
func (t *StateTimes) AddAll(others StateTimes) {
	for _, s := range others {
		t.add(s.Actor, s.State, s.Ns)
	}
}

// Ns is all of it, in nanoseconds.
func (t StateTimes) Ns() int64 {
	sum := 0.0
	for _, s := range t {
		sum += s.Ns
	}
	return int64(sum)
}

// Times is a share of these times.
func (t StateTimes) Times(share float64) StateTimes {
	out := make(StateTimes, 0, len(t))
	for _, s := range t {
		out = append(out, StateTime{s.Actor, s.State, s.Ns * share})
	}
	return out
}

// TimesOf are the times of a call's segments that match.
func TimesOf(a account.Account, match func(account.Segment) bool) (t StateTimes) {
	for _, s := range a.Segments {
		if match(s) {
			t.Add(s, s.Ns())
		}
	}
	return t
}

// TimesWithin are the times of a call's segments that match within some stretches of time.
func (s Spans) TimesWithin(a account.Account, match func(account.Segment) bool) (t StateTimes) {
	for _, g := range a.Segments {
		if match(g) {
			t.Add(g, s.OverlapNs(g.FromNs, g.ToNs))
		}
	}
	return t
}

// CallTimes are the times of a call within some stretches of time.
func (s Spans) CallTimes(a account.Account) StateTimes {
	return s.TimesWithin(a, func(account.Segment) bool { return true })
}
