package account

import "slowpath/internal/recording"

// Callers are all calls of one kind of caller, slow or not.
type Callers struct {
	Calls   int
	Slow    int   // by the histograms; the kernel source reports only so many per second one by one
	Told    int   // of them those that have an account
	TotalNs int64 // of all calls together
	MaxNs   int64 // of the slow ones
	// Of the users' calls: the median, and whether it is from the clients' end, with the way and the client's own part
	// in it.
	P50Ns      int64
	FromClient bool
	// SlowNs is the wall time in which at least one call was slow, ExcessNs the excess of those that were: calls that
	// were under way on one connection at the same time share it.
	SlowNs, ExcessNs int64
}

// Few reports whether so few calls were slow that it is no pattern: less than three, or a part of at most share.
func (c Callers) Few(share float64) bool {
	return c.Slow < 3 || float64(c.Slow) <= share*float64(c.Calls)
}

// OfAll is how many of all calls n of the accounts stand for.
func (c Callers) OfAll(n int) float64 { return float64(n) * float64(c.Slow) / float64(max(c.Told, 1)) }

// loadSlack: where the server got 1/loadSlack more calls than a load made, there were no others: the two counts begin
// and end at slightly different moments.
const loadSlack = 100

// count fills in Users and Probe.
func (l *Ledger) count(rec *recording.Recording) {
	gets, slowGets := 0, 0 // the probe's own, among those that the server got
	for _, c := range rec.Calls {
		if c.Source != recording.SourceProbe {
			continue
		}
		l.Probe.Calls++
		if c.Op == "GET" && c.Error == "" {
			gets++
			if c.EndNs-c.StartNs >= l.ThresholdNs {
				slowGets++
			}
		}
	}
	load, loadSlow := 0, 0
	for _, h := range loads(rec) {
		load += int(h.TotalCount())
		loadSlow += slowOf(h, l.ThresholdNs)
	}
	l.Probe.Calls += load
	own, ownSlow := gets+load, slowGets+loadSlow
	for _, p := range l.Paths {
		l.Probe.TotalNs += p.TotalNs
	}
	if h, ofServer := l.ops.users(int64(own + load/loadSlack)); h != nil {
		l.Users.Calls, l.Users.TotalNs, l.Users.FromClient = int(h.TotalCount()),
			int64(h.Mean()*float64(h.TotalCount())), !ofServer
		l.Users.P50Ns = h.ValueAtQuantile(50)
		l.Users.Slow = slowOf(h, l.ThresholdNs)
		if ofServer {
			all := l.Users.Calls
			l.Users.Calls, l.Users.Slow = all-own, max(l.Users.Slow-ownSlow, 0)
			if load > 0 {
				l.Users.TotalNs = int64(float64(l.Users.TotalNs) * float64(l.Users.Calls) / float64(all))
			}
		}
	}
	if w, ok := recording.WhomOf(rec.Meta); ok { // histograms hold the calls of the others, too
		l.Users.TotalNs = int64(float64(l.Users.TotalNs) * float64(w.Calls) / float64(max(l.Users.Calls, 1)))
		l.Users.Calls, l.Users.Slow = int(w.Calls), 0
	}
	for _, a := range l.Slow {
		p := l.callers(a)
		p.Told++
		p.MaxNs = max(p.MaxNs, a.DurationNs())
		if a.Call.Source == recording.SourceServer {
			p.TotalNs += a.DurationNs()
		}
	}
	l.Probe.Slow = max(l.Probe.Told, loadSlow)
	l.Users.Slow = max(l.Users.Told, l.Users.Slow)
	l.Users.Calls = max(l.Users.Calls, l.Users.Slow)
}

// callers are those that a slow call belongs to.
func (l *Ledger) callers(a Account) *Callers {
	if a.Call.Source == recording.SourceTap {
		return &l.Users
	}
	return &l.Probe
}

// weigh gives every slow call its weight in shares (docs/decisions/0008-whose-excess.md). Calls that were under way on
// one connection at the same time waited together: they share the time in which any of them was. And the users' calls
// together weigh against the probe's as the wall time in which any of them was slow: neither the rate of the probe nor
// that of the users decides.
func (l *Ledger) weigh(rec *recording.Recording) {
	l.count(rec)
	l.together()
	l.slowTime()
	var excess, slow float64
	for _, p := range []*Callers{&l.Users, &l.Probe} {
		excess += float64(p.ExcessNs)
		slow += float64(p.SlowNs)
	}
	for i, a := range l.Slow {
		p := l.callers(a)
		l.Slow[i].Weight = a.together
		if p.ExcessNs > 0 && slow > 0 && l.Users.Slow > 0 && l.Probe.Slow > 0 {
			l.Slow[i].Weight *= float64(p.SlowNs) / slow * excess / float64(p.ExcessNs)
		}
	}
	l.ExcessNs = int64(excess)
}

// together finds the calls of a connection of users that overlap. The probe's calls are due at moments of their own,
// whether or not the one before has come back: each stands for itself.
func (l *Ledger) together() {
	type group struct {
		members  []int
		from, to int64
		sum      int64
	}
	open := map[string]*group{}
	share := func(g *group) {
		for _, i := range g.members {
			l.Slow[i].together = float64(g.to-g.from) / float64(max(g.sum, 1))
		}
	}
	for i, a := range l.Slow {
		l.Slow[i].together = 1
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
	excess := map[*Callers]float64{}
	for _, a := range l.Slow {
		excess[l.callers(a)] += float64(a.ExcessNs) * a.together
	}
	for p, ns := range excess {
		p.ExcessNs = int64(ns + 0.5)
	}
}

// slowTime adds up per kind of caller the wall time in which any of its calls to a node was slow.
func (l *Ledger) slowTime() {
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

// Slowness is the part of all the time of calls that the excess of the slow ones makes up.
func (l *Ledger) Slowness() float64 {
	var part, slow float64
	for _, p := range []Callers{l.Users, l.Probe} {
		part += float64(p.SlowNs) * min(1, float64(p.ExcessNs)/float64(max(p.TotalNs, p.ExcessNs, 1)))
		slow += float64(p.SlowNs)
	}
	return part / max(slow, 1)
}
