package account

import (
	"cmp"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Ledger is the accounts of all slow calls of a recording.
type Ledger struct {
	ThresholdNs int64
	// FreshThresholdNs is that of slowpath's calls on new connections, of the slowest path; 0: none were made.
	FreshThresholdNs int64
	Latency          Latency
	Paths            []Path
	Slow             []Account // ordered by time
	Suspects         []Suspect // longest first
	ExcessNs         int64     // weighted sum over Slow
	// Users are the calls of the server's users, which the tap sees; Probe those of slowpath, and what the server
	// logged.
	Users, Probe Callers
	// Populations are all calls by whose they are: first those of the users.
	Populations []Population
	// Stalls are when each time began in which at least one call of the users to a node was slow, in nanoseconds since
	// the epoch, in order of time: Users.SlowNs is how long these are together.
	Stalls []int64
	exact  map[string][]Segment // by node
	hops   hops
	served map[string]*hdrhistogram.Histogram // the times of all calls at the node's end, by node
}

// Exact is what the tap saw of the main thread of a node's server: its waits, and its work of 0.2 ms and more, ordered
// and disjoint; nil where it did not see it.
func (l *Ledger) Exact(node string) []Segment { return l.exact[node] }

// Path finds a path.
func (l *Ledger) Path(node, conn string) (Path, bool) { return findPath(l.Paths, node, conn) }

// Total is the time of all slow calls in one state.
type Total struct {
	Actor string
	State string
	Ns    int64
	Share float64 // of the time of all slow calls
}

// Totals adds up the segments of all slow calls, largest first. Calls that were under way on one connection at the same
// time share it.
func (l *Ledger) Totals() []Total {
	type key struct{ actor, state string }
	sums := map[key]float64{}
	var all float64
	for i, a := range l.Slow {
		if a.IsPart() {
			continue
		}
		for _, s := range l.Whole(i) {
			ns := float64(s.Ns()) * a.waitShare
			sums[key{s.Actor, s.State}] += ns
			all += ns
		}
	}
	out := make([]Total, 0, len(sums))
	for k, ns := range sums {
		out = append(out, Total{k.actor, k.state, int64(ns + 0.5), ns / all})
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Actor+a.State, b.Actor+b.State))
	})
	return out
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
