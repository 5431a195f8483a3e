package account

import "slowpath/internal/recording"

// weigh gives every slow call its weight in shares (docs/decisions/0008-whose-excess.md). Calls that were under way on
// one connection at the same time waited together: they share the time in which any of them was. The users' calls
// together weigh against the probe's as the wall time in which any of them was slow: neither the rate of the probe nor
// that of the users decides.
func (l *Ledger) weigh() {
	l.shareWaits()
	l.sumExcess()
	l.sumSlowTime()
	excess := float64(l.Users.ExcessNs) + float64(l.Probe.ExcessNs)
	slow := float64(l.Users.SlowNs) + float64(l.Probe.SlowNs)
	for i, a := range l.Slow {
		p := l.callers(a)
		l.Slow[i].Weight = a.waitShare
		if p.ExcessNs > 0 && slow > 0 && l.Users.Slow > 0 && l.Probe.Slow > 0 {
			l.Slow[i].Weight *= float64(p.SlowNs) / slow * excess / float64(p.ExcessNs)
		}
	}
	l.ExcessNs = int64(excess)
}

func (l *Ledger) callers(a Account) *Callers { return callersOf(a, &l.Users, &l.Probe) }

// shareWaits divides the time in which calls of a connection of users overlap among them. The probe's calls are due at
// times of their own, whether or not the one before has come back: each stands for itself.
func (l *Ledger) shareWaits() {
	type group struct { // calls that overlap
		members  []int
		from, to int64
		sum      int64
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
		if g != nil && a.Call.IntendedNs >= g.to {
			share(g)
			g = nil
		}
		if g == nil {
			g = &group{from: a.Call.IntendedNs}
			open[k] = g
		}
		g.members = append(g.members, i)
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
		k := key{a.Call.Node, a.Call.Source == recording.SourceTap}
		from := a.Call.IntendedNs
		if end, seen := until[k]; seen {
			from = max(from, end)
		}
		if a.Call.EndNs > from {
			l.callers(a).SlowNs += a.Call.EndNs - from
			until[k] = a.Call.EndNs
		}
	}
}
