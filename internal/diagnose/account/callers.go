package account

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// Callers are all calls of one kind of caller, slow or not.
type Callers struct {
	Calls    int
	Slow     int   // by the histograms; the tap reports only so many per second one by one
	Recorded int   // of the slow ones, those that have an account
	TotalNs  int64 // of all calls together
	MaxNs    int64 // of the slow ones
	// Of the users' calls: the median, and whether it was measured at the clients' end, which includes the network and
	// the client's own part.
	P50Ns      int64
	FromClient bool
	// SlowNs is the wall time in which at least one call was slow, ExcessNs the excess of those that were: calls that
	// were under way on one connection at the same time share it.
	SlowNs, ExcessNs int64
}

// MinSlowCalls is the least number of slow calls that is a pattern, whatever their share.
const MinSlowCalls = degree.Several

// Few reports whether so few calls were slow that it is no pattern: less than MinSlowCalls, or as many as may be by
// chance where this share of calls is slow.
func (c Callers) Few(share float64) bool {
	return c.Slow < MinSlowCalls || stats.PoissonTail(c.Slow, share*float64(c.Calls)) > ByChance
}

// ByChance is the largest probability of what is no pattern: of 400 calls 9 may be slow where 1 % are.
// Bound: statistics, one-sided, at 5 %.
const ByChance = 0.05

// OfAll is how many of all calls n of the accounts stand for.
func (c Callers) OfAll(n int) float64 {
	return float64(n) * float64(c.Slow) / float64(max(c.Recorded, 1))
}

// countCallers counts the calls of the users, and those of slowpath's probe and load.
func countCallers(rec *recording.Recording, all *latencies, slow []Account) (users, probe Callers) {
	load, loadSlow := 0, 0
	for _, h := range all.load {
		load += int(h.TotalCount())
		loadSlow += countFrom(h, all.thresholdNs)
	}
	gets, slowGets := 0, 0 // the probe's own, among those that the server received
	for _, c := range rec.Calls {
		if c.Source != recording.SourceProbe {
			continue
		}
		probe.Calls++
		if c.Op == "GET" && c.Error == "" {
			gets++
			if c.EndNs-c.StartNs >= all.thresholdNs {
				slowGets++
			}
		}
	}
	probe.Calls = load + all.probeCalls(probe.Calls)
	for _, p := range all.paths {
		probe.TotalNs += p.TotalNs
	}
	if rec.OwnCallsApart() {
		gets, slowGets = 0, 0
	}
	users = countUsers(all, load, gets+load, slowGets+loadSlow)
	if w, ok := recording.SelectedCallsOf(rec.Meta); ok { // the histograms hold the calls of other processes, too
		users.TotalNs = int64(float64(users.TotalNs) * float64(w.Calls) / float64(max(users.Calls, 1)))
		users.Calls, users.Slow = int(w.Calls), 0
	}
	for _, a := range slow {
		if a.IsPart() {
			continue
		}
		p := callersOf(a, &users, &probe)
		p.Recorded++
		p.MaxNs = max(p.MaxNs, a.DurationNs())
		if a.Call.Source == recording.SourceServer {
			p.TotalNs += a.DurationNs()
		}
	}
	probe.Slow = max(probe.Recorded, loadSlow)
	users.Slow = max(users.Recorded, users.Slow)
	users.Calls = max(users.Calls, users.Slow)
	return users, probe
}

// countUsers counts the calls of the users by the tap's histograms. Of the calls that the server received, load are of
// a load, own of it or of the probe, and of these ownSlow were slow. Where it received hardly more than a load made
// there were no others: the two counts begin and end at different times.
func countUsers(all *latencies, load, own, ownSlow int) Callers {
	h, ofServer := all.tap.users(int64(own + load/degree.Many))
	if h == nil {
		return Callers{}
	}
	u := Callers{
		Calls: int(h.TotalCount()), Slow: all.countSlow(h),
		TotalNs: int64(h.Mean() * float64(h.TotalCount())), P50Ns: h.ValueAtQuantile(50), FromClient: !ofServer,
	}
	if ofServer {
		u.Slow = countFrom(h, all.thresholdNs)
		received := u.Calls
		u.Calls, u.Slow = received-own, max(u.Slow-ownSlow, 0)
		if c := all.tap.atClients(u.Calls); c != nil {
			u.Slow = max(u.Slow, all.countSlow(c)) // slow is what they feel
		}
		if load > 0 {
			u.TotalNs = int64(float64(u.TotalNs) * float64(u.Calls) / float64(received))
		}
	}
	return u
}

// callersOf are those that a slow call belongs to.
func callersOf(a Account, users, probe *Callers) *Callers {
	if a.Call.Source == recording.SourceTap {
		return users
	}
	return probe
}
