package facts

import (
	"slices"
	"sort"
)

// Bounds of a leak. One connection that is kept aside is a subscriber or a lock's.
const (
	minLeaked = MinRedials
	// since its last call: longer than callers hold a connection between two calls of one piece of work
	minIdleNs     = int64(100e6)
	sampleDelayNs = int64(2e9) // before the end of the watch: what is used after the last look at it only seems unused
	minDialShare  = 0.5        // of the openings happened beside an idle connection
)

// Leak is what a caller has lost of its connections.
type Leak struct {
	*Caller
	Leaked []*Conn // not used again, though the pool had to open others meanwhile
	// those of its runtime's garbage collector, which closes what is lost; none where there is no such thing
	GCSweeps []GCSweep
	Dialled  []*Conn // those it opened on the way of calls, most of them beside lost ones
}

func (n *Node) Leaks(callers []*Caller) (out []Leak) {
	driven := map[*Conn]bool{}
	for _, l := range n.MassDisconnects(callers) {
		for _, k := range l.Reopened {
			driven[k] = true
		}
	}
	for _, c := range callers {
		if l := n.leakOf(c, driven); len(l.Leaked) >= minLeaked {
			out = append(out, l)
		}
	}
	return out
}

// leakOf is what one caller lost; nothing where most of its openings were not beside lost connections.
func (n *Node) leakOf(c *Caller, driven map[*Conn]bool) Leak {
	l := Leak{Caller: c}
	opened := c.Opened()
	for _, k := range opened {
		if !k.OpenedAheadOfUse(c.RoundTripNs()) && k.Handshake != nil && !driven[k] {
			l.Dialled = append(l.Dialled, k)
		}
	}
	dials := DialTimes(l.Dialled)
	rests := c.idleSpans(n.EndNs)
	l.GCSweeps = c.gcSweeps(dials)
	for _, s := range l.GCSweeps {
		for _, k := range s.Conns {
			rests[k] = k.idleSpan()
		}
	}
	var idle Spans
	for _, k := range c.Conns {
		if r, ok := rests[k]; ok && anyWithin(dials, r) {
			l.Leaked, idle = append(l.Leaked, k), append(idle, r)
		}
	}
	idle = MergeSpans(idle)
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

// resting are the connections that are still open at the end, each with the time in which it lay idle and another need
// not have been opened.
func (c *Caller) idleSpans(endNs int64) map[*Conn]Span {
	out := map[*Conn]Span{}
	for _, k := range c.Conns {
		used := k.AppCalls() > 0 || k.Handshake != nil
		if used && k.CloseNs == 0 && k.ServerClosedNs == 0 && (k.OpenNs > 0 || len(k.Samples) > 0) {
			out[k] = Span{k.lastUseNs() + minIdleNs, endNs - sampleDelayNs}
		}
	}
	return out
}

// PassedOver are those of some closed connections beside which others were dialled while they lay idle: the pool
// thought them in use, or was not theirs.
func IdleDuringDials(ended []*Conn, dials []int64) (out []*Conn) {
	for _, k := range ended {
		if r := k.idleSpan(); anyWithin(dials, r) {
			out = append(out, k)
		}
	}
	return out
}

// DialsOf are the moments at which some connections were dialled, in order.
func DialTimes(conns []*Conn) []int64 {
	var out []int64
	for _, k := range conns {
		out = append(out, k.OpenNs-k.DialNs)
	}
	slices.Sort(out)
	return out
}

// anyWithin reports whether one of some moments, which are sorted, lies in a stretch of time.
func anyWithin(moments []int64, s Span) bool {
	i := sort.Search(len(moments), func(i int) bool { return moments[i] > s.FromNs })
	return i < len(moments) && moments[i] < s.ToNs
}
