package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// GCSweep is connections that the garbage collector of a caller's runtime closed in one go, since the program had
// leaked them. Sockets of Go and of Java are closed when nothing refers to them any more.
type GCSweep struct {
	facts.Span
	// Conns are the connections.
	Conns []*caller.Conn
}

// gcSweeps are the sweeps of a garbage collector: of connections that were idle during dials, whose idle times are no
// limit, and each of all that was leaked by then. A client object that is closed with all of its connections leaves
// those of others; a pool's reaper closes nothing early.
func gcSweeps(c *caller.Caller, dials []int64) []GCSweep {
	all := closingSweeps(c)
	all = slices.DeleteFunc(all, func(s GCSweep) bool { return len(idleDuringDials(s.Conns, dials)) == 0 })
	var swept []*caller.Conn
	for _, s := range all {
		swept = append(swept, s.Conns...)
	}
	lost := idleDuringDials(swept, dials)
	idle := caller.PercentilesOf(swept, func(k *caller.Conn) int64 { return k.IdleNs })
	if len(lost) < minLeaked || float64(idle.P10) >= degree.Most*float64(idle.Median) {
		return nil
	}
	left := 0
	for _, k := range lost {
		idle := facts.Span{FromNs: k.IdleSpan().FromNs, ToNs: k.CloseNs}
		if slices.ContainsFunc(all, func(s GCSweep) bool { return s.FromNs > idle.FromNs && s.ToNs < idle.ToNs }) {
			left++
		}
	}
	if float64(left) > degree.Part*float64(len(lost)) {
		return nil
	}
	return all
}

// closingSweeps are the times at which a caller closed several connections between calls, while others stayed open.
func closingSweeps(c *caller.Caller) []GCSweep {
	ended := c.ConnsWhere((*caller.Conn).ClosedIdle)
	slices.SortStableFunc(ended, func(a, b *caller.Conn) int { return cmp.Compare(a.CloseNs, b.CloseNs) })
	var all []GCSweep
	for i, k := range ended {
		if i == 0 || !atOnce(k.CloseNs-ended[i-1].CloseNs) {
			all = append(all, GCSweep{Span: facts.Span{FromNs: k.CloseNs, ToNs: k.CloseNs}})
		}
		s := &all[len(all)-1]
		s.ToNs, s.Conns = k.CloseNs, append(s.Conns, k)
	}
	return slices.DeleteFunc(all, func(s GCSweep) bool { return len(s.Conns) < minLeaked || !outlives(c, s.Span) })
}

// outlives reports whether a connection was open all through a stretch of time.
func outlives(c *caller.Caller, s facts.Span) bool {
	return slices.ContainsFunc(c.Conns, func(k *caller.Conn) bool {
		return k.OpenNs < s.FromNs && (k.CloseNs == 0 || k.CloseNs > s.ToNs)
	})
}
