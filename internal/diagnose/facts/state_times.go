package facts

import "slowpath/internal/diagnose/account"

// StateTime is time of a call that something explains: up to Ns nanoseconds of what passed between FromNs and ToNs with
// an actor in a state. Where ToNs is 0 it is not known when in that state they were.
type StateTime struct {
	Actor, State string
	FromNs, ToNs int64
	Ns           float64
}

// StateTimes is what something explains of a call.
type StateTimes []StateTime

// Add adds the part of a segment that is explained, in nanoseconds.
func (t *StateTimes) Add(s account.Segment, ns int64) {
	if ns > 0 {
		*t = append(*t, StateTime{s.Actor, s.State, s.FromNs, s.ToNs, float64(ns)})
	}
}

// AddAnywhere adds time in a state of which it is not known when it was, in nanoseconds.
func (t *StateTimes) AddAnywhere(actor, state string, ns int64) {
	if ns > 0 {
		*t = append(*t, StateTime{Actor: actor, State: state, Ns: float64(ns)})
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
		s.Ns *= share
		out = append(out, s)
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
