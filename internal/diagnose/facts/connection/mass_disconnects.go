package connection

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// MassDisconnect is many connections of a node that were closed at about the same time, and not by their clients: the
// server ended, they were killed, or a proxy was restarted.
type MassDisconnect struct {
	facts.Span // from the first to the last of them
	// Conns are the connections.
	Conns []*caller.Conn
	// Callers are the callers of Conns.
	Callers []*caller.Caller
	// Reopened are the connections that the same callers opened next, and kept.
	Reopened []*caller.Conn
	// WithCall is the number of Conns with a call under way.
	WithCall int
}

// MassDisconnects are the times at which connections were closed by the other end. What the server's parameter timeout
// closes is left out: its clients notice it one by one.
func MassDisconnects(n *facts.Node, callers []*caller.Caller) []MassDisconnect {
	var cuts []*caller.Conn
	limit := n.IdleLimitNs()
	for _, c := range callers {
		cuts = append(cuts, c.ConnsWhere(func(k *caller.Conn) bool {
			return k.ServerClosedNs > 0 && (limit == 0 || k.ServerClosedIdleNs < limit || k.Unanswered > 0)
		})...)
	}
	slices.SortStableFunc(cuts, func(a, b *caller.Conn) int { return cmp.Compare(a.ServerClosedNs, b.ServerClosedNs) })
	var out []MassDisconnect
	for i, k := range cuts {
		if i == 0 || !atOnce(k.ServerClosedNs-cuts[i-1].ServerClosedNs) {
			out = append(out, MassDisconnect{Span: facts.Span{FromNs: k.ServerClosedNs, ToNs: k.ServerClosedNs}})
		}
		l := &out[len(out)-1]
		l.ToNs, l.Conns = k.ServerClosedNs, append(l.Conns, k)
		if k.Lost() > 0 {
			l.WithCall++
		}
		if !slices.Contains(l.Callers, k.Owner) {
			l.Callers = append(l.Callers, k.Owner)
		}
	}
	opened := map[*caller.Caller][]*caller.Conn{}
	next, nextMass := int64(math.MaxInt64), int64(math.MaxInt64)
	for i := range slices.Backward(out) {
		l := &out[i]
		until := l.FromNs + degree.Many*int64(degree.Long) // longer than backoffs
		if len(l.Conns) >= degree.Many {
			l.findReopened(opened, min(until, nextMass)) // whatever straggles behind it
			nextMass = l.FromNs
		} else {
			l.findReopened(opened, min(until, next))
		}
		next = l.FromNs
	}
	return out
}

// reopened are those of all mass disconnects.
func reopened(n *facts.Node, callers []*caller.Caller) map[*caller.Conn]bool {
	out := map[*caller.Conn]bool{}
	for _, l := range MassDisconnects(n, callers) {
		for _, k := range l.Reopened {
			out[k] = true
		}
	}
	return out
}

// findReopened collects what the callers opened until then and kept. It may be more than they are known to have had:
// connections that were not used during the watch are not known.
func (l *MassDisconnect) findReopened(opened map[*caller.Caller][]*caller.Conn, until int64) {
	dialNs := func(k *caller.Conn) int64 { return k.OpenNs - k.DialNs }
	for _, c := range l.Callers {
		list, known := opened[c]
		if !known {
			list = c.Opened()
			slices.SortStableFunc(list, func(a, b *caller.Conn) int { return cmp.Compare(dialNs(a), dialNs(b)) })
			opened[c] = list
		}
		for _, k := range list[sort.Search(len(list), func(i int) bool { return dialNs(list[i]) >= l.FromNs }):] {
			if dialNs(k) >= until {
				break
			}
			if k.CloseNs == 0 || k.ClosedBy != recording.Client {
				l.Reopened = append(l.Reopened, k)
			}
		}
	}
}

// UptimeErrorNs is how far from its begin a restart may be reported.
// Bound: server, uptime_in_seconds of INFO is in whole seconds, and is asked once per second.
const UptimeErrorNs = int64(2e9)

// RestartedDuring reports whether the server restarted in a stretch of time, or UptimeErrorNs before or after it.
func RestartedDuring(n *facts.Node, s facts.Span) bool {
	for _, e := range n.Events(recording.SourceServer, recording.KindRestart) {
		if e.TimeNs >= s.FromNs-UptimeErrorNs && e.TimeNs <= s.ToNs+UptimeErrorNs {
			return true
		}
	}
	return false
}

// RefusedDials counts the dials in a stretch of time that were refused because nobody listened.
func RefusedDials(n *facts.Node, s facts.Span) (count int) {
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if IsRefusedDial(e.ConnDetail) && e.TimeNs >= s.FromNs && e.TimeNs < s.ToNs {
			count++
		}
	}
	return count
}
