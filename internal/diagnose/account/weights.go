package account

import "slowpath/internal/recording"

// weigh gives every slow call its weight in shares (docs/decisions/0008-whose-excess.md). Calls that a user sent at
// once on one connection waited together: they share the time in which any of them was under way. The probe is one
// caller beside the users, however many of its calls wait at once: together they weigh as the wall time in which any of
// them was slow, and where it made more calls than the users, as if it had made as many.
func (l *Ledger) weigh(rec *recording.Recording) {
	l.shareWaits()
	for i, a := range l.Slow {
		l.Slow[i].waitShare = a.waitShare * float64(rec.StandsFor(a.Call))
	}
	l.sumExcess()
	l.sumSlowTime()
	probe := 1.0
	if l.Probe.ExcessNs > l.Probe.SlowNs {
		probe = float64(l.Probe.SlowNs) / float64(l.Probe.ExcessNs)
	}
	if l.Users.Calls > 0 && l.Users.Calls < l.Probe.Calls {
		probe *= float64(l.Users.Calls) / float64(l.Probe.Calls)
	}
	for i, a := range l.Slow {
		l.Slow[i].Weight = a.waitShare
		if l.callers(a) == &l.Probe {
			l.Slow[i].Weight *= probe
		}
	}
	l.ExcessNs = l.Users.ExcessNs + int64(probe*float64(l.Probe.ExcessNs)+0.5)
}

func (l *Ledger) callers(a Account) *Callers { return callersOf(a, &l.Users, &l.Probe) }

// PauseNs is the longest pause between two calls of one task, in nanoseconds: what a library and a wake-up need. Calls
// that follow each other by less are of one caller; a large pipeline is written by several system calls. Callers that
// share a connection send when they want to.
// Bound: slowpath, chain_pause_ns of the tap.
const PauseNs = int64(100e3)

// shareWaits divides the time in which the calls of a pipeline were under way among them. The probe's calls are due at
// times of their own, whether or not the one before has come back: each stands for itself.
func (l *Ledger) shareWaits() {
	type group struct { // calls that overlap
		members        []int
		from, to, last int64 // last: when the last was sent
		sum            int64
	}
	open := map[string]*group{} // by connection
	share := func(g *group) {
		for _, i := range g.members {
			l.Slow[i].waitShare = float64(g.to-g.from) / float64(max(g.sum, 1))
		}
	}
	for i, a := range l.Slow {
		l.Slow[i].waitShare = 1
		if a.Call.Source != recording.SourceTap {
			continue
		}
		k := a.Call.Node + " " + a.Call.Conn
		g := open[k]
		if g != nil && (a.Call.IntendedNs >= g.to || a.Call.IntendedNs-g.last > PauseNs) {
			share(g)
			g = nil
		}
		if g == nil {
			g = &group{from: a.Call.IntendedNs}
			open[k] = g
		}
		g.members, g.last = append(g.members, i), a.Call.IntendedNs
		g.to = max(g.to, a.Call.EndNs)
		g.sum += a.DurationNs()
	}
	for _, g := range open {
		share(g)
	}
}

// sumExcess adds up the excess per kind of caller.
func (l *Ledger) sumExcess() {
	excess := map[*Callers]float64{}
	for _, a := range l.Slow {
		if a.IsPart() {
			continue
		}
		excess[l.callers(a)] += float64(a.ExcessNs) * a.waitShare
	}
	for p, ns := range excess {
		p.ExcessNs = int64(ns + 0.5)
	}
}

// sumSlowTime adds up per kind of caller the wall time in which any of its calls to a node was slow.
func (l *Ledger) sumSlowTime() {
	type key struct {
		node  string
		users bool
	}
	until := map[key]int64{}
	for _, a := range l.Slow { // ordered by their begin
		if a.IsPart() {
			continue
		}
		k := key{a.Call.Node, a.Call.Source == recording.SourceTap}
		from := a.Call.IntendedNs
		if end, seen := until[k]; seen {
			from = max(from, end)
		}
		if end, seen := until[k]; k.users && (!seen || a.Call.IntendedNs > end) {
			l.Stalls = append(l.Stalls, a.Call.IntendedNs)
		}
		if a.Call.EndNs > from {
			l.callers(a).SlowNs += a.Call.EndNs - from
			until[k] = a.Call.EndNs
		}
	}
}
