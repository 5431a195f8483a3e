package connection

import (
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// DialBurst is a group of connections that one caller opened together to fill its pool.
type DialBurst struct {
	*caller.Caller
	// Conns are the connections.
	Conns []*caller.Conn
	// Serial says that they were dialled one after the other, and not at the same time.
	Serial bool
}

// DialBursts are the groups of dials with which callers filled their pools, without connections that replace others.
func DialBursts(n *facts.Node, callers []*caller.Caller) []DialBurst {
	back := reopened(n, callers)
	var out []DialBurst
	for _, c := range callers {
		ended := len(c.ConnsWhere(func(k *caller.Conn) bool {
			return k.ClosedBy == recording.Client && k.CloseNs > 0 || k.ServerClosedNs > 0
		}))
		fresh := introducedInNeed(c, back)
		if len(fresh) < degree.Many || 2*ended > len(fresh) {
			continue // they are opened and closed all the time, by the pool or by jobs
		}
		slices.SortStableFunc(fresh, byOpening)
		out = append(out, concurrentBursts(c, fresh)...)
		out = append(out, serialBursts(c, fresh)...)
	}
	return out
}

// concurrentBursts are the groups of connections whose openings overlap.
func concurrentBursts(c *caller.Caller, fresh []*caller.Conn) (out []DialBurst) {
	var group []*caller.Conn
	until := int64(0)
	flush := func() {
		if facts.MaxOverlap(Openings(group)) >= degree.Many {
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

// serialBursts are the runs of dials of which each began when the one before was done: a lock that is handed on takes
// microseconds.
func serialBursts(c *caller.Caller, fresh []*caller.Conn) (out []DialBurst) {
	var row []*caller.Conn
	flush := func() {
		if len(row) >= degree.Many {
			out = append(out, DialBurst{Caller: c, Conns: row, Serial: true})
		}
		row = nil
	}
	for _, k := range fresh {
		if last := len(row) - 1; last >= 0 {
			gap := k.OpenNs - k.DialNs - row[last].OpenNs
			if gap < 0 || float64(gap) > degree.Part*float64(row[last].DialNs) {
				flush()
			}
		}
		row = append(row, k)
	}
	flush()
	return out
}
