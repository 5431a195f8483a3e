package cause

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/stats"
)

// reconnectHerd: connections of many callers are lost at the same time, and all reconnect at once: each with its
// handshake, while calls wait.
var reconnectHerd = Cause{
	ID:      "reconnect-herd",
	Class:   Redial,
	Options: []remedy.Topic{remedy.SpreadReconnects},
	Changes: []string{"restart", "CLIENT KILL", "timeout"},
	// What closed the connections is the root, where it is known.
	After:   []string{"failover-window"},
	Explain: explainReconnectHerd,
}

func explainReconnectHerd(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	if len(callers) == 0 {
		return herdByCounters(n)
	}
	var herds []connection.MassDisconnect
	var back []*caller.Conn
	var spans facts.Spans
	for _, l := range connection.MassDisconnects(n, callers) {
		if len(l.Conns) < degree.Many || facts.MaxOverlap(connection.Openings(l.Reopened)) < degree.Many {
			continue
		}
		herds, back = append(herds, l), append(back, l.Reopened...)
		spans = append(spans, facts.Span{FromNs: l.FromNs, ToNs: untilBack(&l)})
	}
	if len(herds) == 0 {
		return nil
	}
	var cost int64
	var seen []*caller.Conn // others were opened ahead, and not used during the watch
	for _, k := range back {
		if k.Handshake != nil || k.SlowHandshakeEndNs > 0 {
			seen = append(seen, k)
		}
		if k.Handshake != nil && !k.OpenedAheadOfUse(meanCallNs(callers)) {
			cost += k.OpeningNs()
		}
	}
	opening := caller.PercentilesOf(seen, func(k *caller.Conn) int64 {
		return k.Opening().ToNs - k.Opening().FromNs
	})
	f, _ := openedTogether(n, callers, facts.MergeSpans(spans), cost, opening.P90)
	if f == nil {
		return nil
	}
	f.supportHerds(n, herds)
	f.support(recording.SourceTap, float64(opening.Median), "ns", "a new connection then takes %s before its first "+
		"command (p90 %s); a call takes %s", format.Brief(opening.Median), format.Brief(opening.P90),
		format.Brief(meanCallNs(callers)))
	f.FixSteps = herdFix(n)
	return f
}

// untilBack is when the last of the reconnected connections had its first reply.
func untilBack(l *connection.MassDisconnect) int64 {
	to := l.ToNs
	for _, k := range l.Reopened {
		to = max(to, k.Opening().ToNs)
	}
	return to
}

// meanCallNs is the mean round trip of some callers.
func meanCallNs(callers []*caller.Caller) int64 {
	var ns, calls int64
	for _, c := range callers {
		ns, calls = ns+c.RoundTripNs()*c.AppCalls(), calls+c.AppCalls()
	}
	return ns / max(calls, 1)
}

func (f *Finding) supportHerds(n *facts.Node, herds []connection.MassDisconnect) {
	worst := slices.MaxFunc(herds, func(a, b connection.MassDisconnect) int {
		return cmp.Compare(len(a.Reopened), len(b.Reopened))
	})
	f.support(recording.SourceTap, float64(len(worst.Conns)), "connections",
		"%d connections of %s were closed by the server's end within %s, %d of them with a call in flight",
		len(worst.Conns), caller.CallerNames(worst.Callers), format.Brief(worst.ToNs-worst.FromNs), worst.WithCall)
	openings := connection.Openings(worst.Reopened)
	f.support(recording.SourceTap, float64(len(openings)), "connections",
		"the same callers opened %d within %s, up to %d at the same time", len(openings),
		format.Brief(untilBack(&worst)-openings[0].FromNs), facts.MaxOverlap(openings))
	switch refused := connection.RefusedDials(n, facts.Span{FromNs: worst.FromNs, ToNs: untilBack(&worst)}); {
	case connection.RestartedDuring(n, worst.Span):
		f.support(recording.SourceServer, 1, "restarts", "the server was restarted then (run_id)")
		fallthrough
	case refused > 0:
		f.support(recording.SourceTap, float64(refused), "dials", "%s refused and repeated, since nothing listened: "+
			"part of the wait is the outage itself", counted(refused, "dial"))
	default:
		f.support(recording.SourceServer, 0, "", "the server itself went on: the connections were killed (CLIENT "+
			"KILL, a proxy, a firewall), or exceeded a limit")
	}
}

// herdByCounters judges by the server's counters and slowpath's own connections.
func herdByCounters(n *facts.Node) *Finding {
	received := n.Series(series.TotalConnectionsReceived)
	if len(received) < degree.Several {
		return nil
	}
	var growths []float64
	for i := 1; i < len(received); i++ {
		growths = append(growths, max(received[i].Value-received[i-1].Value, 0))
	}
	slices.Sort(growths)
	typical := stats.MedianUpper(growths)
	var spans facts.Spans
	most, restarts := 0.0, 0
	for i := 1; i < len(received); i++ {
		from, to := received[i-1].TimeNs, received[i].TimeNs
		came := received[i].Value - received[i-1].Value
		restarted := came < 0
		if restarted {
			came = received[i].Value
		}
		open, _ := n.Series(series.ConnectedClients).At(to)
		cut := restarted || ownCut(n, facts.Span{FromNs: from, ToNs: to})
		if came < degree.Many+degree.Several*typical || open < degree.Most*came || !cut {
			continue
		}
		if most = max(most, came); restarted {
			restarts++
		}
		spans = append(spans, facts.Span{FromNs: from, ToNs: to})
	}
	if len(spans) == 0 {
		return nil
	}
	f := finding(n, n.ClaimOf(spans.CallTimes))
	if f.SlowCalls == 0 {
		return nil
	}
	f.support(recording.SourceServer, most, "connections", "%.0f connections came within a second or two, where %.0f "+
		"are normal, and stayed (total_connections_received, connected_clients)", most, typical)
	if restarts > 0 {
		f.support(recording.SourceServer, float64(restarts), "restarts", "the server was restarted right before")
	} else {
		f.support(recording.SourceProbe, float64(len(spans)), "times",
			"slowpath's own connections were cut right before")
	}
	f.doubt(recording.SourceServer, 0, "",
		"whether callers waited for these connections, and which callers, was not seen")
	f.FixSteps = herdFix(n)
	return f
}

// ownCut reports whether the other end closed a connection of slowpath during a span.
func ownCut(n *facts.Node, s facts.Span) bool {
	for _, e := range n.Rec.Events {
		if e.Kind != recording.KindError || e.Subject != n.Address || e.TimeNs < s.FromNs || e.TimeNs > s.ToNs {
			continue
		}
		text := recording.DetailOf[recording.ErrorDetail](e).Message
		if strings.Contains(text, "connection was closed before the reply") {
			return true
		}
	}
	return false
}

func herdFix(n *facts.Node) []remedy.Step {
	spread := offered(n, remedy.SpreadReconnects, nil, "Spread reconnects over some seconds: random "+
		"jitter in the pause before each attempt, with a growing backoff")
	steps := append(spread, inApplication("fewer-connections", "Fewer connections in all: smaller pools, or a proxy "+
		"on the callers' host that keeps its own"))
	if facts.ServerAtLeast(n, 7, 4) {
		return steps // it has the limit, and it is set by default
	}
	return append(steps, newerServer("Upgrade the server to Redis 7.4 or Valkey 8.0 or later: it accepts at most "+
		"max-new-connections-per-cycle new connections (TLS: max-new-tls-connections-per-cycle) per event-loop "+
		"iteration, so that connected clients are served meanwhile"))
}
