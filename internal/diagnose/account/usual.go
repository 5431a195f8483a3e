package account

import (
	"sort"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// Path is all calls of one kind of connection to one node: what is usual is known per path.
type Path struct {
	Node  string
	Conn  string // kept or fresh
	Calls int
	// Percentiles of the calls' time from intended to end, in nanoseconds.
	MinNs, P50Ns, P90Ns, P99Ns, MaxNs int64
	TotalNs                           int64 // of all calls together
	// ConnectNs is the median time of a TCP connect on fresh connections: a round trip that needs no server process.
	ConnectNs, ConnectMinNs int64
}

// Latency sums up the calls of a load; without one the probe's calls on kept connections (of all its calls where there
// are none); without the probe those of the users, by the kernel source's count of all calls.
type Latency struct {
	Calls                       int
	P50Ns, P99Ns, P999Ns, MaxNs int64
}

// bounds of the automatic threshold. 5 ms is what a caller in the same data centre notices on a call that takes 0.2 ms,
// and above the timer and scheduling noise of a busy virtual machine.
const (
	autoFloor   = 5 * time.Millisecond
	autoCeiling = 500 * time.Millisecond
	autoTimes   = 3 // times the path's fastest calls, so that distance alone makes no call slow
)

func paths(rec *recording.Recording) []Path {
	type key struct{ node, conn string }
	byPath := map[key][]int64{}
	connects := map[string][]int64{}
	for _, c := range rec.Calls {
		if c.Source != recording.SourceProbe || c.Error != "" {
			continue
		}
		k := key{c.Node, c.Conn}
		byPath[k] = append(byPath[k], felt(rec, c))
		for _, s := range rec.Segments[c.ID] {
			if s.State == Dial && s.Culprit == "connect" {
				connects[c.Node] = append(connects[c.Node], s.ToNs-s.FromNs)
			}
		}
	}
	out := make([]Path, 0, len(byPath))
	for k, ns := range byPath {
		sortNs(ns)
		p := Path{
			Node: k.node, Conn: k.conn, Calls: len(ns), MinNs: ns[0], P50Ns: quantile(ns, 0.5),
			P90Ns: quantile(ns, 0.9),
			P99Ns: quantile(ns, 0.99), MaxNs: ns[len(ns)-1],
		}
		for _, d := range ns {
			p.TotalNs += d
		}
		if c := connects[k.node]; len(c) > 0 {
			sortNs(c)
			p.ConnectNs, p.ConnectMinNs = quantile(c, 0.5), c[0]
		}
		out = append(out, p)
	}
	for node, h := range loads(rec) {
		if h.TotalCount() > 0 {
			out = append(out, loadPath(node, h))
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Node+"\x00"+out[i].Conn < out[j].Node+"\x00"+out[j].Conn })
	return out
}

// Path finds a path.
func (l *Ledger) Path(node, conn string) (Path, bool) {
	for _, p := range l.Paths {
		if p.Node == node && p.Conn == conn {
			return p, true
		}
	}
	return Path{}, false
}

// usual is the median of the call's path. Where more than half of the calls are slow the median is slow as well, and
// would hide the very thing that is asked about; then it is the path's fastest calls (docs/decisions/0002-baseline.md).
func (l *Ledger) usual(c recording.Call) int64 {
	if c.Source == recording.SourceTap {
		return l.usualOfOp(c)
	}
	p, ok := l.Path(c.Node, c.Conn)
	if !ok {
		return 0
	}
	if p.P50Ns >= l.ThresholdNs {
		return p.MinNs
	}
	return p.P50Ns
}

// felt is a call's time as a caller that runs when it wants to would have felt it: from the intended start to the reply
// in hand, less what the probe's own process waited for a CPU of this host. That is the observer's fault and not the
// server's.
func felt(rec *recording.Recording, c recording.Call) int64 {
	ns := c.EndNs - c.IntendedNs
	if c.Source != recording.SourceProbe {
		return ns
	}
	for _, s := range rec.Segments[c.ID] {
		if s.Actor == Client && s.State == RunQueue {
			ns -= max(min(s.ToNs, c.EndNs)-max(s.FromNs, c.IntendedNs), 0)
		}
	}
	return max(ns, 0)
}

func threshold(rec *recording.Recording, l *Ledger) int64 {
	if d, err := time.ParseDuration(rec.Meta[recording.MetaSlow]); err == nil && d > 0 {
		return int64(d)
	}
	floor := int64(0)
	for _, p := range l.Paths {
		floor = max(floor, p.MinNs)
	}
	if h := l.ops.seen(); len(l.Paths) == 0 && h != nil {
		floor = h.Min()
	}
	return min(max(int64(autoFloor), autoTimes*floor), int64(autoCeiling))
}

func latency(rec *recording.Recording, l *Ledger) Latency {
	var load *hdrhistogram.Histogram
	for _, h := range loads(rec) {
		load = merge(load, h)
	}
	if load != nil && load.TotalCount() > 0 {
		return latencyOf(load)
	}
	var kept, all []int64
	for _, c := range rec.Calls {
		if c.Source != recording.SourceProbe {
			continue
		}
		ns := felt(rec, c)
		all = append(all, ns)
		if c.Conn != "fresh" {
			kept = append(kept, ns)
		}
	}
	if len(kept) == 0 {
		kept = all
	}
	if h := l.ops.seen(); len(kept) == 0 && h != nil {
		return latencyOf(h)
	}
	if len(kept) == 0 {
		return Latency{}
	}
	sortNs(kept)
	return Latency{len(all), quantile(kept, 0.5), quantile(kept, 0.99), quantile(kept, 0.999), kept[len(kept)-1]}
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	return Latency{int(h.TotalCount()), h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.ValueAtQuantile(99.9), h.Max()}
}

func sortNs(ns []int64) { sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] }) }

// quantile of sorted values, the nearest rank.
func quantile(ns []int64, q float64) int64 {
	i := int(q*float64(len(ns)) + 0.5)
	return ns[min(max(i-1, 0), len(ns)-1)]
}
