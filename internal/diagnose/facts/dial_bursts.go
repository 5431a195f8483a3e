package facts

import (
	"slices"

	"slowpath/internal/recording"
)

const (
	// minSerialDials is how many dials one after the other are no chance.
	// Bound: guess.
	minSerialDials = 8
	// maxSerialGap is what may lie between two of them, as a part of the one before: a lock that is handed on takes
	// microseconds.
	// Bound: guess.
	maxSerialGap = 0.2
	// minSerialDialNs is the time in nanoseconds from which a dial is worth waiting for.
	// Bound: guess.
	minSerialDialNs = int64(1e6)
)

// DialBurst is a group of connections that one caller opened together to fill its pool.
type DialBurst struct {
	*Caller
	// Conns are the connections.
	Conns []*Conn
	// Serial says that they were dialled one after the other, and not at the same time.
	Serial bool
}

// DialBursts are the groups of dials with which callers filled their pools, without connections that replace others.
func (n *Node) DialBursts(callers []*Caller) []DialBurst {
	back := map[*Conn]bool{}
	for _, l := range n.MassDisconnects(callers) {
		for _, k := range l.Reopened {
			back[k] = true
		}
	}
	var out []DialBurst
	for _, c := range callers {
		var fresh []*Conn
		ended := len(c.ConnsWhere(func(k *Conn) bool {
			return k.ClosedBy == recording.Client && k.CloseNs > 0 ||
				k.ServerClosedNs > 0
		}))
		for _, k := range c.Opened() {
			if !back[k] && !k.OpenedAheadOfUse(c.RoundTripNs()) && k.Handshake != nil {
				fresh = append(fresh, k)
			}
		}
		if len(fresh) < minSerialDials || 2*ended > len(fresh) {
			continue // they are opened and closed all the time, by the pool or by jobs
		}
		slices.SortStableFunc(fresh, func(a, b *Conn) int { return int(a.Opening().FromNs - b.Opening().FromNs) })
		out = append(out, c.concurrentBursts(fresh)...)
		out = append(out, c.serialBursts(fresh)...)
	}
	return out
}

// concurrentBursts are the groups of connections whose openings overlap.
func (c *Caller) concurrentBursts(fresh []*Conn) (out []DialBurst) {
	var group []*Conn
	until := int64(0)
	flush := func() {
		if len(group) >= MinHerd && MaxOverlap(Openings(group)) >= MinHerdConcurrent {
			out = append(out, DialBurst{Caller: c, Conns: group})
		}
		group = nil
	}
	for _, k := range fresh {
		o := k.Opening()
		if o.FromNs > until {
			flush()
		}
		group, until = append(group, k), max(until, o.ToNs)
	}
	flush()
	return out
}

// serialBursts are the runs of dials of which each began when the one before was done.
func (c *Caller) serialBursts(fresh []*Conn) (out []DialBurst) {
	var row []*Conn
	flush := func() {
		if len(row) >= minSerialDials {
			out = append(out, DialBurst{Caller: c, Conns: row, Serial: true})
		}
		row = nil
	}
	for _, k := range fresh {
		if k.DialNs < minSerialDialNs {
			flush()
			continue
		}
		if last := len(row) - 1; last >= 0 {
			gap := k.OpenNs - k.DialNs - row[last].OpenNs
			if gap < 0 || float64(gap) > maxSerialGap*float64(row[last].DialNs) {
				flush()
			}
		}
		row = append(row, k)
	}
	flush()
	return out
}
