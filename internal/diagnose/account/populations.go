package account

import "slowpath/internal/recording"

// Names of populations.
const (
	OfUsers   = "users"   // the server's clients, by the tap
	OfProbe   = "probe"   // slowpath's own calls
	OfLoad    = "load"    // those of slowpath bench
	OfSlowlog = "slowlog" // commands that only the server's SLOWLOG has
)

// Population is all calls of one kind of caller, slow or not.
type Population struct {
	Name string
	// Side is the end of the connections at which the calls of users were timed: recording.Client, or recording.Server,
	// which sees neither the network nor the client's own part.
	Side string
	// Latency is that of all its calls from when they were due to their replies, without slowpath's own delay; times
	// are 0 where they are not known.
	Latency
	Slow int
	// Recorded are the slow ones that have an account.
	Recorded int
	// WireP99Ns is that of users from their requests on, in nanoseconds, where threads waited longer than their calls
	// took; else 0.
	WireP99Ns int64
}

// populations are those that the recording has, the users' first.
func populations(rec *recording.Recording, all *latencies, l *Ledger) (out []Population) {
	slow := map[string]Population{} // by source: recorded, and the longest
	for _, a := range l.Slow {
		if a.IsPart() {
			continue
		}
		p := slow[a.Call.Source]
		p.Recorded++
		p.MaxNs = max(p.MaxNs, a.FeltNs())
		slow[a.Call.Source] = p
	}
	for _, p := range []Population{
		usersOf(rec, all, l), loadOf(all),
		{Name: OfProbe, Latency: all.ofProbe(rec, func(string) bool { return true })},
		{Name: OfSlowlog},
	} {
		known := slow[sourceOf[p.Name]]
		p.Recorded, p.Slow = known.Recorded, max(p.Slow, known.Recorded)
		p.Calls = max(p.Calls, p.Slow)
		p.MaxNs = slowestOf(p, known.MaxNs, l.ThresholdNs)
		p.P50Ns, p.P99Ns, p.P999Ns = min(p.P50Ns, p.MaxNs), min(p.P99Ns, p.MaxNs), min(p.P999Ns, p.MaxNs)
		if p.Calls > 0 {
			out = append(out, p)
		}
	}
	return out
}

var sourceOf = map[string]string{
	OfUsers: recording.SourceTap, OfLoad: recording.SourceLoad, OfProbe: recording.SourceProbe,
	OfSlowlog: recording.SourceServer,
}

// histogramSteps is into how many steps the tap's histograms divide each power of two: HIST_BITS in
// internal/source/tap/bpf/types.h. Those of a load are finer.
// Bound: slowpath, the tap's histograms.
const histogramSteps = 32

// slowestOf is the time of the slowest call. That of recorded calls is exact. Of a histogram the lower end of the step
// counts, and what is not slow is shorter than the threshold.
func slowestOf(p Population, recordedNs, thresholdNs int64) int64 {
	if p.Name == OfProbe {
		return p.MaxNs
	}
	if p.Slow == 0 {
		return min(p.MaxNs, thresholdNs)
	}
	return max(recordedNs, p.MaxNs-p.MaxNs/histogramSteps)
}

// usersOf are the users' calls by the tap's count of all. They are timed at the clients' end where most of them were
// seen there: the server's end often has a few more, and sees neither the network nor a client that stands still. Where
// other calls are in a histogram, too, the users' percentiles are not known.
func usersOf(rec *recording.Recording, all *latencies, l *Ledger) Population {
	p := Population{
		Name: OfUsers, Side: recording.Server, Latency: Latency{Calls: l.Users.Calls}, Slow: l.Users.Slow,
	}
	if p.Calls == 0 {
		return p
	}
	h := all.tap.bySide[recording.Server]
	if c := all.tap.atClients(p.Calls); c != nil {
		h, p.Side = c, recording.Client
		if all.tap.wire != nil {
			p.WireP99Ns = all.tap.wire.ValueAtQuantile(99)
		}
	}
	if _, some := recording.SelectedCallsOf(rec.Meta); some || h == nil ||
		p.Side == recording.Server && len(all.load) > 0 {
		return p
	}
	p.Latency = latencyOf(h)
	p.Calls = l.Users.Calls
	return p
}

func loadOf(all *latencies) Population {
	p := Population{Name: OfLoad}
	if h := all.ofLoad(); h != nil {
		p.Latency, p.Slow = latencyOf(h), countFrom(h, all.thresholdNs)
	}
	return p
}
