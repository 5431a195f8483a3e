package join

import (
	"slices"
	"sort"
)

// clockBounds bounds the offset of the server's clock from the client's, over time. Each joined call bounds it: its
// request was at the server after the client began to send, and its reply was at the client after the server sent it.
type clockBounds struct {
	bounds   []bound // ordered by time
	rejected int     // calls whose bounds contradict those of others
	unusable bool    // too many of them
}

// bound: at a time of the client's clock the offset is in [lo, hi], in nanoseconds.
type bound struct {
	at, lo, hi int64
}

const (
	// driftPerMillion is by how much two clocks can come apart: each may be slewed by 500 ppm (MAXFREQ of
	// include/linux/timex.h). slowpath's clocks are monotonic: they are not set while it runs.
	driftPerMillion = 1000
	// maxRejectedShare of the calls may contradict the others: the end of a send is recorded late if the server is
	// interrupted before its system call returns, and of many segments queued in a socket only some have a time of
	// their own. A clock that was set contradicts all calls before it, or all after it.
	maxRejectedShare   = 0.05
	comparedNeighbours = 32 // on either side, with which a call is compared
	// maxSendDelayNs is how late the send of a reply may be recorded: when its system call returns. Between two network
	// namespaces of one kernel, where that call delivers the reply, it was 40 µs at most (TestTwoHosts, Linux 6.18).
	maxSendDelayNs = int64(100e3)
	// roundedNs: packet captures have the times of packets, in many files rounded to microseconds.
	roundedNs = int64(1e3)
)

// drift is by how much the clocks can diverge in a time, rounded up.
func drift(ns int64) int64 { return ns/1e6*driftPerMillion + ns%1e6*driftPerMillion/1e6 + 1 }

// newClockBounds needs pairs in order of time. The end of a call at the server is noted late by lateNs at most.
func newClockBounds(pairs []pair, lateNs int64) clockBounds {
	var c clockBounds
	for _, p := range pairs {
		hi := p.server.IntendedNs - p.start()
		c.bounds = append(c.bounds, bound{p.start(), hi - p.networkNs() - lateNs, hi})
	}
	all := len(c.bounds)
	b := consistent(c.bounds)
	for i := 1; i < len(b); i++ {
		b[i].hi = min(b[i].hi, b[i-1].hi+drift(b[i].at-b[i-1].at))
	}
	for i := len(b) - 2; i >= 0; i-- {
		b[i].hi = min(b[i].hi, b[i+1].hi+drift(b[i+1].at-b[i].at))
	}
	b = slices.DeleteFunc(b, func(one bound) bool { return one.lo > one.hi })
	c.bounds, c.rejected = b, all-len(b)
	if c.unusable = float64(c.rejected) > maxRejectedShare*float64(all); c.unusable {
		c.bounds = nil
		return c
	}
	for i := 1; i < len(b); i++ {
		b[i].lo = max(b[i].lo, b[i-1].lo-drift(b[i].at-b[i-1].at))
	}
	for i := len(b) - 2; i >= 0; i-- {
		b[i].lo = max(b[i].lo, b[i+1].lo-drift(b[i+1].at-b[i].at))
	}
	return c
}

// consistent leaves out the bounds that contradict most of their neighbours.
func consistent(all []bound) []bound {
	var out []bound
	for i, b := range all {
		near := all[max(0, i-comparedNeighbours):min(len(all), i+comparedNeighbours+1)]
		against := 0
		for _, o := range near {
			if d := drift(max(b.at-o.at, o.at-b.at)); b.lo-d > o.hi || o.lo-d > b.hi {
				against++
			}
		}
		if 2*against <= len(near)-1 {
			out = append(out, b)
		}
	}
	return out
}

// at bounds the offset at a time of the client's clock.
func (c clockBounds) at(ns int64) (lo, hi int64, ok bool) {
	if len(c.bounds) == 0 {
		return 0, 0, false
	}
	i := sort.Search(len(c.bounds), func(i int) bool { return c.bounds[i].at >= ns })
	if i == len(c.bounds) || i > 0 && ns-c.bounds[i-1].at < c.bounds[i].at-ns {
		i--
	}
	b := c.bounds[i]
	d := drift(max(ns-b.at, b.at-ns))
	return b.lo - d, b.hi + d, true
}

// shift is the most likely offset at a time of the client's clock.
func (c clockBounds) shift(ns int64) int64 {
	lo, hi, _ := c.at(ns)
	return lo + (hi-lo)/2
}
