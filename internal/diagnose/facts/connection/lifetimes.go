package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// listedAgeNs is how exact the ages of CLIENT LIST are, in nanoseconds.
// Bound: server, age is in whole seconds.
const listedAgeNs = int64(1e9)

// Lifetimes are the ages at which a caller closed connections between calls, and at once opened others in their place.
type Lifetimes struct {
	Redial
	// Ages are the ages of Closed, in nanoseconds.
	Ages facts.Percentiles
	// Herds are groups of Dialled that it opened together.
	Herds []DialBurst
}

// LifetimesOf are the callers whose pools close connections at a certain age, while they are in use.
func LifetimesOf(n *facts.Node, callers []*caller.Caller) (out []Lifetimes) {
	for _, r := range PoolRedials(n, callers) {
		older := func(k *caller.Conn) bool { return k.OpenNs == 0 }
		aged, exactNs := slices.DeleteFunc(slices.Clone(r.Closed), older), int64(0)
		var began map[string]int64
		if len(aged) < MinRedials {
			aged, exactNs, began = r.Closed, listedAgeNs, listedBegins(n)
		}
		age := func(k *caller.Conn) int64 {
			if k.OpenNs > 0 {
				return k.CloseNs - k.OpenNs
			}
			return k.CloseNs - cmp.Or(began[k.Client], k.CloseNs)
		}
		a, work := caller.PercentilesOf(aged, age), caller.PercentilesOf(aged, (*caller.Conn).AppCalls)
		// A limit closes nothing earlier. Later it does: a pool looks at the age when it gives a connection to a call.
		spread := degree.Part * float64(a.Median)
		same := float64(a.Median-a.P10) <= spread && spread >= float64(exactNs)
		jobs := work.P10 <= 1 || work.P10 == work.P90 // each makes one call, or the same ones
		if len(aged) < MinRedials || !same || jobs || r.ByIdleLimit() || r.replacedAtOnce(aged) < MinRedials {
			continue
		}
		r.Closed = aged
		slices.SortStableFunc(r.Dialled, byOpening)
		out = append(out, Lifetimes{Redial: r, Ages: a, Herds: concurrentBursts(r.Caller, r.Dialled)})
	}
	return out
}

// listedBegins is when connections were made, in nanoseconds, by their ages in CLIENT LIST.
func listedBegins(n *facts.Node) map[string]int64 {
	return facts.Once(n, "ages in CLIENT LIST", findListedBegins)
}

func findListedBegins(n *facts.Node) map[string]int64 {
	out := map[string]int64{}
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "clients" {
			for _, c := range caller.ParseClients(s.Body) {
				out[c.Addr] = s.TimeNs - c.Age*1e9
			}
		}
	}
	return out
}

// replacedAtOnce is how many of some closed connections were followed by a dial of the same process at once. A job that
// is done opens none then; a pool opens one instead of several that had expired.
func (r Redial) replacedAtOnce(closed []*caller.Conn) (count int) {
	dialled := caller.ByOwner(r.Dialled)
	for owner, conns := range caller.ByOwner(closed) {
		dials := dialTimes(dialled[owner])
		for _, k := range conns {
			about := facts.Span{FromNs: k.CloseNs - int64(degree.AtOnce), ToNs: k.CloseNs + int64(degree.AtOnce)}
			if anyWithin(dials, about) {
				count++
			}
		}
	}
	return count
}
