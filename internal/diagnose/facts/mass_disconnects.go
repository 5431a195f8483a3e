package facts

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
)

// loss is a moment at which many connections of a node were taken from their clients: the server ended, somebody killed
// them, a proxy was restarted.
type MassDisconnect struct {
	Span     // from the first to the last
	Conns    []*Conn
	Callers  []*Caller
	Reopened []*Conn // what the same callers opened next, and kept
	WithCall int     // lost with a call under way
}

const (
	// lossGapNs: what one reason ends, it ends without longer pauses.
	maxDisconnectGapNs = int64(300e6)
	// backWithinNs is how long after a loss what is opened can be meant to replace it: longer than clients' backoffs.
	reopenWithinNs = int64(5e9)
)

// MassLosses are the losses of connections at which herds can begin. What the server's own limit of idle time ends is
// none: it is missed one by one.
func (n *Node) MassDisconnects(callers []*Caller) []MassDisconnect {
	type cut struct {
		*Conn
		by *Caller
	}
	var cuts []cut
	limit := n.IdleLimitNs()
	for _, c := range callers {
		for _, k := range c.Conns {
			if k.ServerClosedNs > 0 && (limit == 0 || k.ServerClosedIdleNs < limit || k.Unanswered > 0) {
				cuts = append(cuts, cut{k, c})
			}
		}
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(a.ServerClosedNs, b.ServerClosedNs) })
	var out []MassDisconnect
	for i, k := range cuts {
		if i == 0 || k.ServerClosedNs-cuts[i-1].ServerClosedNs > maxDisconnectGapNs {
			out = append(out, MassDisconnect{Span: Span{k.ServerClosedNs, k.ServerClosedNs}})
		}
		l := &out[len(out)-1]
		l.ToNs, l.Conns = k.ServerClosedNs, append(l.Conns, k.Conn)
		if k.Unanswered > 0 {
			l.WithCall++
		}
		if !slices.Contains(l.Callers, k.by) {
			l.Callers = append(l.Callers, k.by)
		}
	}
	for i := range out {
		until := out[i].FromNs + reopenWithinNs
		if i+1 < len(out) {
			until = min(until, out[i+1].FromNs)
		}
		out[i].findReopened(until)
	}
	return out
}

// findReturn takes what the callers opened until then and kept. It may be more than they are known to have lost:
// connections that were not used in the watch are not known.
func (l *MassDisconnect) findReopened(until int64) {
	for _, c := range l.Callers {
		for _, k := range c.Opened() {
			kept := k.CloseNs == 0 || k.ClosedBy != recording.Client
			if from := k.OpenNs - k.DialNs; kept && from >= l.FromNs && from < until {
				l.Reopened = append(l.Reopened, k)
			}
		}
	}
}

// Restarted reports whether the server was, about then; it tells in whole seconds.
func (n *Node) RestartedDuring(s Span) bool {
	const about = int64(3e9)
	for _, e := range n.Events(recording.SourceServer, recording.KindRestart) {
		if e.TimeNs >= s.FromNs-about && e.TimeNs <= s.ToNs+about {
			return true
		}
	}
	return false
}

// Refused counts the dials in a stretch of time that found nobody listening.
func (n *Node) RefusedDials(s Span) (count int) {
	for _, e := range n.Events(recording.SourceTap, recording.KindClose) {
		d := recording.DetailOf[recording.ConnDetail](e)
		if d.Side == recording.Client && d.AgeNs == 0 && d.Reason == recording.CloseRefused && e.TimeNs >= s.FromNs &&
			e.TimeNs < s.ToNs {
			count++
		}
	}
	return count
}
