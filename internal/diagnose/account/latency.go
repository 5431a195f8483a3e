package account

import (
	"slices"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/stats"
)

// Path is all calls of one kind of connection to one node: the baseline is known per path.
type Path struct {
	Node  string
	Conn  string // kept, fresh or load
	Calls int
	// Percentiles of the calls' time from when they were due to the reply, in nanoseconds.
	MinNs, P50Ns, P90Ns, P99Ns, MaxNs int64
	TotalNs                           int64 // of all calls together
	// Unsent are calls that were due and never sent, since the connection was not free.
	Unsent int
	// ConnectNs is the median time of a TCP connect on fresh connections: a round trip that needs no server process.
	ConnectNs, ConnectMinNs int64
	// DistanceNs is the least round trip of the path: of TCP connects, or by the kernel's count on the connections of
	// this host's callers. 0 where it is not known, or something between answers connects in the server's place.
	DistanceNs int64
}

// Latency sums up the calls of a load; without one the probe's calls on kept connections (of all its calls where there
// are none); without the probe those of the users, by the tap's count of all calls.
type Latency struct {
	Calls                       int
	P50Ns, P99Ns, P999Ns, MaxNs int64
}

// latencies is what the recording shows of all calls, slow or not.
type latencies struct {
	paths       []Path
	load        map[string]*hdrhistogram.Histogram    // by node
	probe       map[probePath]*hdrhistogram.Histogram // nil: all its calls are recorded
	tap         tapHistograms
	usual       usual
	thresholdNs int64
	set         bool // the threshold was set by the user
}

func readLatencies(rec *recording.Recording, h *hops) *latencies {
	a := &latencies{
		load: loadHistograms(rec), probe: probeHistograms(rec), usual: readUsual(rec, h.inner()),
		tap: readTapHistograms(rec, h.inner()),
	}
	a.paths = a.probePaths(rec)
	for node, h := range a.load {
		if h.TotalCount() > 0 {
			a.paths = append(a.paths, histogramPath(node, recording.ConnLoad, h))
		}
	}
	sort.Slice(a.paths, func(i, j int) bool {
		return a.paths[i].Node+"\x00"+a.paths[i].Conn < a.paths[j].Node+"\x00"+a.paths[j].Conn
	})
	a.thresholdNs = a.threshold(rec.Meta[recording.MetaSlow])
	return a
}

// probePaths are the paths of the probe.
func (a *latencies) probePaths(rec *recording.Recording) []Path {
	byPath := map[probePath][]int64{}
	unsent := map[probePath]int{}
	connects, fastest := map[string][]int64{}, map[string]int64{} // by node
	for _, c := range rec.Calls {
		if c.Source != recording.SourceProbe || c.Error != "" {
			continue
		}
		k := probePath{c.Node, c.Conn}
		byPath[k] = append(byPath[k], feltNs(rec, c))
		if c.StartNs == c.EndNs {
			unsent[k]++
		} else if ns := c.EndNs - c.StartNs; c.Conn != connFresh && (fastest[c.Node] == 0 || ns < fastest[c.Node]) {
			fastest[c.Node] = ns
		}
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.State == Dial && s.Culprit == "connect" {
				connects[c.Node] = append(connects[c.Node], s.ToNs-s.FromNs)
			}
		}
	}
	out := make([]Path, 0, len(byPath))
	for k, ns := range byPath {
		p := pathOf(k.node, k.conn, ns)
		if h := a.probe[k]; h != nil && int(h.TotalCount()) > p.Calls {
			p = histogramPath(k.node, k.conn, h)
		}
		p.Unsent = unsent[k]
		if c := connects[k.node]; len(c) > 0 {
			slices.Sort(c)
			p.ConnectNs, p.ConnectMinNs = stats.Quantile(c, 0.5), c[0]
			if p.Conn != connFresh && float64(p.ConnectNs) >= ThroughTCP*float64(fastest[k.node]) {
				p.DistanceNs = leastRTT(rec, k.node, p.ConnectMinNs)
			}
		}
		out = append(out, p)
	}
	return out
}

// ThroughTCP: a TCP connect takes this share of the fastest call, or more, where the server's own kernel answers it.
const ThroughTCP = degree.Most

// leastRTT is the least round trip to a node of which connects took connectNs at least.
func leastRTT(rec *recording.Recording, node string, connectNs int64) int64 {
	if ns, ok := rec.Of(series.CallersLeastRTT, node).Min(); ok {
		return min(int64(ns), connectNs)
	}
	return connectNs
}

// pathOf is the path of calls that took ns, at least one.
func pathOf(node, conn string, ns []int64) Path {
	slices.Sort(ns)
	p := Path{
		Node: node, Conn: conn, Calls: len(ns), MinNs: ns[0], MaxNs: ns[len(ns)-1],
		P50Ns: stats.Quantile(ns, 0.5), P90Ns: stats.Quantile(ns, 0.9), P99Ns: stats.Quantile(ns, 0.99),
	}
	for _, d := range ns {
		p.TotalNs += d
	}
	return p
}

// histogramPath is the path of calls that were counted in a histogram.
func histogramPath(node, conn string, h *hdrhistogram.Histogram) Path {
	return Path{
		Node: node, Conn: conn, Calls: int(h.TotalCount()), MinNs: h.Min(),
		P50Ns: h.ValueAtQuantile(50), P90Ns: h.ValueAtQuantile(90), P99Ns: h.ValueAtQuantile(99), MaxNs: h.Max(),
		TotalNs: int64(h.Mean() * float64(h.TotalCount())),
	}
}

func findPath(paths []Path, node, conn string) (Path, bool) {
	for _, p := range paths {
		if p.Node == node && p.Conn == conn {
			return p, true
		}
	}
	return Path{}, false
}

func (a *latencies) summary(rec *recording.Recording) Latency {
	if h := a.ofLoad(); h != nil {
		return latencyOf(h)
	}
	all := a.ofProbe(rec, func(string) bool { return true })
	kept := a.ofProbe(rec, func(conn string) bool { return conn != connFresh })
	h := a.tap.observed()
	switch {
	case kept.Calls > 0:
		kept.Calls = all.Calls
		return kept
	case all.Calls > 0 || h == nil:
		return all
	}
	return latencyOf(h)
}

// ofLoad are all calls of a load; nil: there were none.
func (a *latencies) ofLoad() (all *hdrhistogram.Histogram) {
	for _, h := range a.load {
		if h.TotalCount() > 0 {
			all = merge(all, h)
		}
	}
	return all
}

// ofProbe are the probe's calls on some connections: recorded or, where that is more, counted.
func (a *latencies) ofProbe(rec *recording.Recording, of func(conn string) bool) Latency {
	var ns []int64
	for _, c := range rec.Calls {
		if c.Source == recording.SourceProbe && of(c.Conn) {
			ns = append(ns, feltNs(rec, c))
		}
	}
	if len(ns) == 0 {
		return Latency{}
	}
	slices.Sort(ns)
	l := Latency{Calls: len(ns), P50Ns: stats.Quantile(ns, 0.5), P99Ns: stats.Quantile(ns, 0.99)}
	l.P999Ns = stats.Quantile(ns, 0.999)
	var counted *hdrhistogram.Histogram
	for k, h := range a.probe {
		if of(k.conn) {
			counted = merge(counted, h)
		}
	}
	if counted != nil && int(counted.TotalCount()) > len(ns) {
		l = latencyOf(counted)
	}
	l.MaxNs = ns[len(ns)-1] // slow calls are thinned last
	return l
}

// probeCalls is how many calls the probe made, of which some are recorded.
func (a *latencies) probeCalls(recorded int) int {
	all := 0
	for _, h := range a.probe {
		all += int(h.TotalCount())
	}
	return max(all, recorded)
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	return Latency{int(h.TotalCount()), h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.ValueAtQuantile(99.9), h.Max()}
}
