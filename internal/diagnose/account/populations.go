package account

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

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
	Side  string
	Calls int
	Slow  int
	// Recorded are the slow ones that have an account.
	Recorded int
	// Times in nanoseconds, from when a call was due to its reply, without slowpath's own delay; 0 where not known.
	P50Ns, P99Ns, P999Ns, MaxNs int64
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
		usersOf(rec, all, l), loadOf(all), probeOf(rec, all), {Name: OfSlowlog},
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
	p := Population{Name: OfUsers, Side: recording.Server, Calls: l.Users.Calls, Slow: l.Users.Slow}
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
	return p.timed(h)
}

func loadOf(all *latencies) Population {
	p := Population{Name: OfLoad}
	var h *hdrhistogram.Histogram
	for _, one := range all.load {
		h = merge(h, one)
	}
	if h == nil || h.TotalCount() == 0 {
		return p
	}
	p.Calls, p.Slow = int(h.TotalCount()), countFrom(h, all.thresholdNs)
	return p.timed(h)
}

// probeOf are all calls of the probe, on kept and on fresh connections.
func probeOf(rec *recording.Recording, all *latencies) Population {
	p := Population{Name: OfProbe}
	var ns []int64
	for _, c := range rec.Calls {
		if c.Source == recording.SourceProbe {
			ns = append(ns, feltNs(rec, c))
		}
	}
	if len(ns) == 0 {
		return p
	}
	p.Calls = all.probeCalls(len(ns))
	var counted *hdrhistogram.Histogram
	for _, h := range all.probe {
		counted = merge(counted, h)
	}
	sortNs(ns)
	if counted != nil && int(counted.TotalCount()) > len(ns) {
		p = p.timed(counted)
		p.MaxNs = ns[len(ns)-1] // slow calls are thinned last
		return p
	}
	p.P50Ns, p.P99Ns, p.P999Ns = stats.Quantile(ns, 0.5), stats.Quantile(ns, 0.99), stats.Quantile(ns, 0.999)
	p.MaxNs = ns[len(ns)-1]
	return p
}

// timed takes the times of a histogram of the population's calls.
func (p Population) timed(h *hdrhistogram.Histogram) Population {
	p.P50Ns, p.P99Ns = h.ValueAtQuantile(50), h.ValueAtQuantile(99)
	p.P999Ns, p.MaxNs = h.ValueAtQuantile(99.9), h.Max()
	return p
}
