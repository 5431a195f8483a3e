package cause

import (
	"cmp"
	"slices"
	"sort"
)

// sweep is what the garbage collector of a caller's runtime closed in one go: connections that the program had lost.
// Sockets of Go and of Java are closed when nothing refers to them any more.
type sweep struct {
	span
	conns []*Conn
}

const (
	// sweepGapNs is between two closes of one sweep: they are made one after the other by one thread, which may lose
	// its CPU for some slices. Measured: 39 connections of redigo within 3 ms (Go 1.26).
	sweepGapNs = int64(20e6)
	// sweepLeft: a collector takes all that is lost by then. What it left and took later was still referred to by
	// somebody.
	sweepLeft = 0.1
)

// sweeps are the moments at which a caller closed several connections between calls, though it went on with others.
func (c *Caller) sweeps() []sweep {
	ended := c.conns((*Conn).putAway)
	slices.SortStableFunc(ended, func(a, b *Conn) int { return cmp.Compare(a.CloseNs, b.CloseNs) })
	var all []sweep
	for i, k := range ended {
		if i == 0 || k.CloseNs-ended[i-1].CloseNs > sweepGapNs {
			all = append(all, sweep{span: span{k.CloseNs, k.CloseNs}})
		}
		s := &all[len(all)-1]
		s.to, s.conns = k.CloseNs, append(s.conns, k)
	}
	return slices.DeleteFunc(all, func(s sweep) bool { return len(s.conns) < leakLeast || !c.outlives(s.span) })
}

// outlives reports whether a connection was open all through a stretch of time.
func (c *Caller) outlives(s span) bool {
	return slices.ContainsFunc(c.Conns, func(k *Conn) bool {
		return k.OpenNs < s.from && (k.CloseNs == 0 ||
			k.CloseNs > s.to)
	})
}

// rest is the time in which a pool would have given a connection to a caller instead of dialling. Next to its close,
// the pool may have been about to close it.
func (c *Conn) rest() span { return span{c.CloseNs - c.IdleNs + leakRestNs, c.CloseNs - leakRestNs} }

// passedOver are those of some closed connections beside which others were dialled while they lay idle: the pool
// thought them in use, or was not theirs.
func passedOver(ended []*Conn, dials []int64) (out []*Conn) {
	for _, k := range ended {
		if r := k.rest(); anyWithin(dials, r) {
			out = append(out, k)
		}
	}
	return out
}

// dialsOf are the moments at which some connections were dialled, in order.
func dialsOf(conns []*Conn) []int64 {
	var out []int64
	for _, k := range conns {
		out = append(out, k.OpenNs-k.DialNs)
	}
	slices.Sort(out)
	return out
}

// anyWithin reports whether one of some moments, which are sorted, lies in a stretch of time.
func anyWithin(moments []int64, s span) bool {
	i := sort.Search(len(moments), func(i int) bool { return moments[i] > s.from })
	return i < len(moments) && moments[i] < s.to
}

// collected are the sweeps of a garbage collector: of connections that were passed over, after times without a call
// that are no limit, and each of all that was lost by then. Client objects that are closed with all of their
// connections leave those of others, a pool's reaper closes nothing early.
func (c *Caller) collected(dials []int64) []sweep {
	all := slices.DeleteFunc(c.sweeps(), func(s sweep) bool { return len(passedOver(s.conns, dials)) == 0 })
	var swept []*Conn
	for _, s := range all {
		swept = append(swept, s.conns...)
	}
	lost := passedOver(swept, dials)
	idle := spreadOf(swept, func(k *Conn) int64 { return k.IdleNs })
	if len(lost) < leakLeast || float64(idle.low) >= limitSharp*float64(idle.mid) {
		return nil
	}
	left := 0
	for _, k := range lost {
		if slices.ContainsFunc(all, func(s sweep) bool { return s.from > k.rest().from && s.to < k.CloseNs }) {
			left++
		}
	}
	if float64(left) > sweepLeft*float64(len(lost)) {
		return nil
	}
	return all
}
