// Package account says where the time of each slow call went. It partitions a call into segments, each an actor in a
// state, that are disjoint and add up to the call exactly. What no source saw stays unexplained.
//
// It is a pure function of a recording. It knows states and culprits, not causes. Data go one way:
//
//  1. All calls, slow or not: their latencies per path (latency.go), by the histograms of load and tap
//     (histograms.go), and from these the slow threshold and the baseline of a call (baseline.go).
//  2. The server's main thread: its exact waits and work, by the tap (main_thread.go), and its states as the host
//     sampled them (host_states.go).
//  3. Suspects (suspect.go): the server's records in SLOWLOG and LATENCY and of forks (suspect_records.go),
//     commandstats (suspect_commandstats.go) and counters of INFO (suspect_info.go), checked against the states that
//     the host saw (suspect_host.go); the work of the main thread (suspect_work.go), matched with the records, so
//     that what both show is one suspect (suspect_match.go). commands.go lists what kind of command each is.
//  4. Other evidence: the main thread's exact timeline with the suspects in it (exact_timeline.go), the probe's sockets
//     (probe_sockets.go), the server's view of slowpath's own calls (served_calls.go).
//  5. A timeline per slow call (timeline.go), filled layer by layer, the surest evidence first (layers.go). A call
//     that was queued behind others on its connection gets what those waited for (probe_queue.go).
//  6. The accounts (account.go), each call once (duplicates.go), with the parts of it that proxies passed on (hops.go,
//     hop_join.go, hop_times.go), with its weight in shares (weights.go), and all calls, slow or not, by whose they are
//     (callers.go, populations.go), make the ledger (ledger.go).
//
// All use segment.go, and time_index.go to find what overlaps a time.
package account

import (
	"sort"

	"slowpath/internal/recording"
)

// Account is one slow call and the partition of its time.
type Account struct {
	Call       recording.Call
	BaselineNs int64 // the baseline: what a call of this command on this path takes while nothing is wrong
	ExcessNs   int64
	// Weight is by how much its time counts in shares: 1 where only the probe called; see weigh.
	Weight float64
	// OwnDelayNs is the part of a call of the probe in which slowpath's own process waited for a CPU of this host. It
	// counts neither against the server nor in latencies (docs/decisions/0006-observers-own-delay.md).
	OwnDelayNs int64
	Segments   []Segment // ordered, disjoint, from Call.IntendedNs to Call.EndNs
	outer      int       // 1 + the index of the slow call at a proxy of which this one is a part; 0: it is whole
	inner      []int     // the indexes of the calls that are parts of it
	// waitShare is 1, or less where other calls of its connection were under way: they share the time of the wait.
	waitShare float64
}

// DurationNs is the call's time as its caller felt it: from when it was due.
func (a Account) DurationNs() int64 { return a.Call.EndNs - a.Call.IntendedNs }

// FeltNs is the call's time without slowpath's own delay.
func (a Account) FeltNs() int64 { return a.DurationNs() - a.OwnDelayNs }

// In is the time spent in a state, in nanoseconds.
func (a Account) In(actor, state string) int64 {
	var ns int64
	for _, s := range a.Segments {
		if s.Actor == actor && s.State == state {
			ns += s.Ns()
		}
	}
	return ns
}

// Build makes the accounts of a recording.
func Build(rec *recording.Recording) *Ledger {
	hops := readHops(rec)
	all := readLatencies(rec, hops)
	threads := mainThreads(rec)
	suspects := findSuspects(rec, threads)
	exact := map[string][]Segment{} // by node
	for node, t := range threads {
		exact[node] = t.timeline(node, suspects)
	}
	p := newPainter(rec, all, threads, suspects, exact, hops)
	l := &Ledger{
		ThresholdNs: all.thresholdNs, Latency: all.summary(rec), Paths: all.paths,
		Suspects: suspects, Slow: accounts(rec, all, p), exact: exact, hops: *hops, served: all.tap.served,
	}
	l.FreshThresholdNs = all.freshNs()
	l.Slow = hops.join(l.Slow, p.impliedCall)
	l.Users, l.Probe = countCallers(rec, all, l.Slow)
	l.Populations = populations(rec, all, l)
	l.weigh(rec)
	return l
}

// accounts are those of all slow calls, ordered by when they were due.
func accounts(rec *recording.Recording, all *latencies, p *painter) []Account {
	var out []Account
	dup := newDuplicates(rec)
	for _, c := range rec.Calls {
		ns, of := feltNs(rec, c), all.likeProbe(rec, c)
		if ns < all.slowNs(of) || dup.ofClientView(c) {
			continue
		}
		if baseline := all.baselineNs(of); ns > baseline {
			excess := ns - baseline
			// Its opening is lost by new connections, which are counted apart.
			if opening := recording.OpeningNs(c, rec.SegmentsOf(c.ID)); opening > 0 {
				excess = max(0, ns-opening-all.baselineNs(c))
			}
			out = append(out, Account{
				Call: c, BaselineNs: baseline, ExcessNs: excess, OwnDelayNs: c.EndNs - c.IntendedNs - ns,
				Segments: p.partition(c, baseline),
			})
		}
	}
	for i, s := range p.suspects {
		if s.Own && !s.Merged && s.DurationNs >= all.thresholdNs && (s.Busy || !s.Stopped) && !dup.recorded(s) {
			out = append(out, loggedCall(s, i))
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Call.IntendedNs < out[j].Call.IntendedNs })
	return out
}

// impliedCall is the call that a proxy made to a node while a slow call of its own waited, where the tap recorded none
// that was slow: of slowpath's own calls through a proxy, and where only a part of the slow calls is recorded. Where
// what was seen at that node does not explain most of the time, the call was not slow there.
func (p *painter) impliedCall(node string, of Account, s Segment) (Account, bool) {
	c := recording.Call{
		Source: of.Call.Source, Conn: of.Call.Conn, Op: of.Call.Op, Node: node, Slot: -1,
		IntendedNs: s.FromNs, StartNs: s.FromNs, EndNs: s.ToNs,
	}
	baseline := p.latencies.baselineNs(c)
	if s.Ns() <= baseline || s.Ns() < p.latencies.slowNs(c) {
		return Account{}, false
	}
	t := newTimeline(c.IntendedNs, c.EndNs)
	p.putSeen(t, c)
	a := Account{Call: c, BaselineNs: baseline, ExcessNs: s.Ns() - baseline, Segments: t.segments()}
	return a, 2*a.In(Nobody, Unexplained) < s.Ns()
}

// loggedCall is the account of a command that the server itself logged as slow: its whole time is its own execution.
func loggedCall(s Suspect, index int) Account {
	end := s.ToNs
	c := recording.Call{
		Source: recording.SourceServer, Conn: s.Client, Op: s.Command, ArgCount: s.ArgCount,
		Node: s.Node, Slot: -1,
		IntendedNs: end - s.DurationNs, StartNs: end - s.DurationNs, EndNs: end,
	}
	return Account{
		Call: c, ExcessNs: s.DurationNs,
		Segments: []Segment{{Server, Exec, c.IntendedNs, end, s.Text, index}},
	}
}
