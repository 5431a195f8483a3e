package connection

import (
	"slices"
	"sort"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

const (
	// minLeaked is the least number of leaked connections: a single one that is kept apart is a subscriber's or a
	// lock's.
	minLeaked = MinRedials
	// sampleDelayNs is how long before the end of the watch samples may miss the last use.
	// Bound: slowpath, connections report themselves each second while they are used (status_ns of the tap).
	sampleDelayNs = int64(2e9)
	// minDialShare is the least share of the openings that must have happened while a leaked connection was idle.
	// Bound: majority, of the openings.
	minDialShare = 0.5
)

// Leak is the connections that a caller's program took from its pool and did not give back.
type Leak struct {
	*caller.Caller
	// Leaked are the connections that were not used again, though the pool had to open others meanwhile.
	Leaked []*caller.Conn
	// GCSweeps are those of them that a garbage collector closed; none where the runtime does not do so.
	GCSweeps []GCSweep
	// Dialled are the connections that it opened while a call waited, most of them while leaked ones were idle.
	Dialled []*caller.Conn
}

// Leaks are those of the callers that leaked connections.
func Leaks(n *facts.Node, callers []*caller.Caller) (out []Leak) {
	driven := map[*caller.Conn]bool{}
	for _, l := range MassDisconnects(n, callers) {
		for _, k := range l.Reopened {
			driven[k] = true
		}
	}
	for _, c := range callers {
		if l := leakOf(n, c, driven); len(l.Leaked) >= minLeaked {
			out = append(out, l)
		}
	}
	return out
}

// leakOf is what one caller leaked; nothing where most of its openings were not while leaked connections were idle.
func leakOf(n *facts.Node, c *caller.Caller, driven map[*caller.Conn]bool) Leak {
	l := Leak{Caller: c}
	opened := c.Opened()
	for _, k := range opened {
		if !k.OpenedAheadOfUse(c.RoundTripNs()) && k.Handshake != nil && !driven[k] {
			l.Dialled = append(l.Dialled, k)
		}
	}
	dials := dialTimes(l.Dialled)
	rests := idleSpans(c, n.EndNs)
	l.GCSweeps = gcSweeps(c, dials)
	for _, s := range l.GCSweeps {
		for _, k := range s.Conns {
			rests[k] = k.IdleSpan()
		}
	}
	var idle facts.Spans
	for _, k := range c.Conns {
		if r, ok := rests[k]; ok && anyWithin(dials, r) {
			l.Leaked, idle = append(l.Leaked, k), append(idle, r)
		}
	}
	idle = facts.MergeSpans(idle)
	beside := 0
	for _, at := range dials {
		if idle.OverlapNs(at, at+1) > 0 {
			beside++
		}
	}
	if beside < minLeaked || float64(beside) < minDialShare*float64(len(opened)) {
		return Leak{}
	}
	return l
}

// idleSpans are the connections that are still open at the end of the watch, each with the time in which it was idle
// and another need not have been opened.
func idleSpans(c *caller.Caller, endNs int64) map[*caller.Conn]facts.Span {
	out := map[*caller.Conn]facts.Span{}
	for _, k := range c.Conns {
		used := k.AppCalls() > 0 || k.Handshake != nil
		if !used || k.CloseNs > 0 || k.ServerClosedNs > 0 {
			continue
		}
		if k.OpenNs > 0 || k.Sampled() {
			out[k] = facts.Span{FromNs: k.LastUseNs() + caller.MinIdleNs, ToNs: endNs - sampleDelayNs}
		}
	}
	return out
}

// idleDuringDials are those of some closed connections that were idle while others were dialled: the pool thought them
// in use, or they were not the pool's.
func idleDuringDials(ended []*caller.Conn, dials []int64) (out []*caller.Conn) {
	for _, k := range ended {
		if r := k.IdleSpan(); anyWithin(dials, r) {
			out = append(out, k)
		}
	}
	return out
}

// dialTimes are when some connections were dialled, in nanoseconds since the Unix epoch, in order.
func dialTimes(conns []*caller.Conn) []int64 {
	var out []int64
	for _, k := range conns {
		out = append(out, k.OpenNs-k.DialNs)
	}
	slices.Sort(out)
	return out
}

// anyWithin reports whether one of some sorted times lies in a stretch of time.
func anyWithin(moments []int64, s facts.Span) bool {
	i := sort.Search(len(moments), func(i int) bool { return moments[i] > s.FromNs })
	return i < len(moments) && moments[i] < s.ToNs
}
