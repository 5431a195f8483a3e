package facts

import (
	"cmp"
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

// lastUse is when the last call of a connection ended, as far as is known: its use is looked at once a second.
func (k *Conn) lastUseNs() int64 {
	at := k.Opening().ToNs
	for i, u := range k.Samples {
		if i == 0 && u.Calls > 0 || i > 0 && u.Calls > k.Samples[i-1].Calls {
			at = max(at, u.TimeNs)
		}
	}
	return at
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

// Sweep is what the garbage collector of a caller's runtime closed in one go: connections that the program had lost.
// Sockets of Go and of Java are closed when nothing refers to them any more.
type GCSweep struct {
	Span
	Conns []*Conn
}

const (
	// sweepGapNs is between two closes of one sweep: they are made one after the other by one thread, which may lose
	// its CPU for some slices. Measured: 39 connections of redigo within 3 ms (Go 1.26).
	maxSweepGapNs = int64(20e6)
	// sweepLeft: a collector takes all that is lost by then. What it left and took later was still referred to by
	// somebody.
	maxLeftShare = 0.1
)

// sweeps are the moments at which a caller closed several connections between calls, though it went on with others.
func (c *Caller) closingSweeps() []GCSweep {
	ended := c.ConnsWhere((*Conn).ClosedIdle)
	slices.SortStableFunc(ended, func(a, b *Conn) int { return cmp.Compare(a.CloseNs, b.CloseNs) })
	var all []GCSweep
	for i, k := range ended {
		if i == 0 || k.CloseNs-ended[i-1].CloseNs > maxSweepGapNs {
			all = append(all, GCSweep{Span: Span{k.CloseNs, k.CloseNs}})
		}
		s := &all[len(all)-1]
		s.ToNs, s.Conns = k.CloseNs, append(s.Conns, k)
	}
	return slices.DeleteFunc(all, func(s GCSweep) bool { return len(s.Conns) < minLeaked || !c.outlives(s.Span) })
}

// outlives reports whether a connection was open all through a stretch of time.
func (c *Caller) outlives(s Span) bool {
	return slices.ContainsFunc(c.Conns, func(k *Conn) bool {
		return k.OpenNs < s.FromNs && (k.CloseNs == 0 ||
			k.CloseNs > s.ToNs)
	})
}

// rest is the time in which a pool would have given a connection to a caller instead of dialling. Next to its close,
// the pool may have been about to close it.
func (c *Conn) idleSpan() Span { return Span{c.CloseNs - c.IdleNs + minIdleNs, c.CloseNs - minIdleNs} }

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

// collected are the sweeps of a garbage collector: of connections that were passed over, after times without a call
// that are no limit, and each of all that was lost by then. Client objects that are closed with all of their
// connections leave those of others, a pool's reaper closes nothing early.
func (c *Caller) gcSweeps(dials []int64) []GCSweep {
	all := slices.DeleteFunc(c.closingSweeps(), func(s GCSweep) bool {
		return len(IdleDuringDials(s.Conns,
			dials)) == 0
	})
	var swept []*Conn
	for _, s := range all {
		swept = append(swept, s.Conns...)
	}
	lost := IdleDuringDials(swept, dials)
	idle := PercentilesOf(swept, func(k *Conn) int64 { return k.IdleNs })
	if len(lost) < minLeaked || float64(idle.P10) >= minSharpness*float64(idle.Median) {
		return nil
	}
	left := 0
	for _, k := range lost {
		if slices.ContainsFunc(all, func(s GCSweep) bool {
			return s.FromNs > k.idleSpan().FromNs &&
				s.ToNs < k.CloseNs
		}) {
			left++
		}
	}
	if float64(left) > maxLeftShare*float64(len(lost)) {
		return nil
	}
	return all
}
