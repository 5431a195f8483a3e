package account

import (
	"slices"
	"time"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
)

// Noticed is the least automatic threshold, in nanoseconds of a call: what a caller in the same data centre notices on
// a call that takes 0.2 ms, and above the timer and scheduling noise of a busy virtual machine.
// Bound: noticed, docs/decisions/0003-automatic-slow-threshold.md.
const Noticed = 5 * time.Millisecond

// automatic is the threshold of a path whose fastest call took that long: distance alone makes no call slow, and no
// round trip on Earth is degree.Long.
func automatic(fastestNs int64) int64 {
	return min(max(int64(Noticed), degree.Several*fastestNs), int64(degree.Long))
}

// threshold is the time from which a call is slow: as set by --slow, or automatic.
func (a *latencies) threshold(set string) int64 {
	if d, err := time.ParseDuration(set); err == nil && d > 0 {
		a.set = true
		return int64(d)
	}
	fastest := int64(0) // of the slowest path
	for _, p := range a.paths {
		if p.Conn != connFresh || !a.hasKept() {
			fastest = max(fastest, a.usual.fastestNs(p))
		}
	}
	if h := a.tap.observed(); len(a.paths) == 0 && h != nil {
		fastest = h.Min()
		if before := a.usual.tap.observed(); before != nil {
			fastest = min(fastest, before.Min())
		}
	}
	return automatic(fastest)
}

// connFresh is the path of calls on new connections. They take the round trips of a handshake more than others.
const connFresh = "fresh"

// hasKept reports whether there are calls on connections that were open before.
func (a *latencies) hasKept() bool {
	return slices.ContainsFunc(a.paths, func(p Path) bool { return p.Conn != connFresh })
}

// slowNs is the time from which a call is slow. With an automatic threshold it is the path's own where that is longer.
func (a *latencies) slowNs(c recording.Call) int64 {
	if c.Conn != connFresh || a.set {
		return a.thresholdNs
	}
	p, _ := findPath(a.paths, c.Node, c.Conn)
	return max(a.thresholdNs, automatic(a.usual.fastestNs(p)))
}

// freshNs is the time from which a call on a new connection is slow, of the node where that is longest; 0: not known.
func (a *latencies) freshNs() (ns int64) {
	for _, p := range a.paths {
		if p.Conn == connFresh {
			ns = max(ns, a.slowNs(recording.Call{Node: p.Node, Conn: p.Conn}))
		}
	}
	return ns
}

// likeProbe is the call itself, or, where its connection was opened for it, a call of the probe on a new connection:
// that has the same round trips, and its path is known.
func (a *latencies) likeProbe(rec *recording.Recording, c recording.Call) recording.Call {
	if _, known := findPath(a.paths, c.Node, connFresh); !known || recording.OpeningNs(c, rec.SegmentsOf(c.ID)) == 0 {
		return c
	}
	return recording.Call{Source: recording.SourceProbe, Node: c.Node, Conn: connFresh}
}

// feltNs is a call's time as a caller that always gets a CPU would have felt it: from when it was due to the reply in
// hand, less what the probe's own process waited for a CPU of this host. That is the observer's fault and not the
// server's (docs/decisions/0006-observers-own-delay.md).
func feltNs(rec *recording.Recording, c recording.Call) int64 {
	ns := c.EndNs - c.IntendedNs
	if c.Source != recording.SourceProbe {
		return ns
	}
	return ns - recording.OwnDelayNs(c, rec.SegmentsOf(c.ID))
}

// baselineNs is the median of the call's path: before the time of the recording, where that is known. Where more than
// half of the calls are slow the median is slow as well, and would hide the very thing that is asked about; then it is
// the path's fastest call (docs/decisions/0002-baseline.md).
func (a *latencies) baselineNs(c recording.Call) int64 {
	if c.Source == recording.SourceTap {
		return a.baselineOfOp(c)
	}
	p, ok := findPath(a.paths, c.Node, c.Conn)
	if !ok {
		return 0
	}
	slow := a.slowNs(c)
	if h := a.usual.probe[probePath{c.Node, c.Conn}]; h != nil && h.ValueAtQuantile(50) < slow {
		return h.ValueAtQuantile(50)
	}
	if p.P50Ns >= slow {
		return a.usual.fastestNs(p)
	}
	return p.P50Ns
}

// baselineOfOp is the median of the call's command at the end from which the tap saw it: before the time of the
// recording, where that is known. Where that is slow, it is the fastest call of all commands: what the path can do.
func (a *latencies) baselineOfOp(c recording.Call) int64 {
	side := recording.Client
	if c.Side == recording.Server {
		side = recording.Server
	}
	fastest := int64(0)
	for _, t := range []tapHistograms{a.usual.tap, a.tap} {
		if h := t.of(c.Node, side, c.Op); h != nil {
			if p50 := h.ValueAtQuantile(50); p50 < a.thresholdNs {
				return p50
			}
		}
		if all := t.bySide[side]; all != nil && (fastest == 0 || all.Min() < fastest) {
			fastest = all.Min()
		}
	}
	if p, ok := findPath(a.paths, c.Node, "kept"); ok && side == recording.Client && p.DistanceNs > 0 {
		fastest = min(fastest, p.DistanceNs)
	}
	return fastest
}
