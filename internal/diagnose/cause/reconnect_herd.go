package cause

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// reconnectHerd: connections of many callers are lost at the same moment, and all come back at once: each with its
// handshake, while calls wait.
var reconnectHerd = Cause{
	ID:    "reconnect-herd",
	Title: "All clients lost their connections at once, and all come back at the same moment",
	Layer: "client",
	Needs: Needs{
		T0: "a restart, or connections of slowpath's own that were cut, with a burst of new connections right behind " +
			"it that stay",
		T2: "connections that the server's end closes together, the same callers dialling many at a time, and what " +
			"each of them costs",
	},
	// What took the connections away is the root, where it is known.
	After:   []string{"failover-window"},
	Explain: explainReconnectHerd,
}

func explainReconnectHerd(n *facts.Node) *Finding {
	callers := n.Callers()
	if len(callers) == 0 {
		return herdByCounters(n)
	}
	var herds []facts.MassDisconnect
	var back []*facts.Conn
	var spells facts.Spans
	for _, l := range n.MassDisconnects(callers) {
		if len(l.Conns) < facts.MinHerd || len(l.Reopened) < facts.MinHerd ||
			facts.MaxOverlap(facts.Openings(l.Reopened)) < facts.MinHerdConcurrent {
			continue
		}
		herds, back = append(herds, l), append(back, l.Reopened...)
		spells = append(spells, facts.Span{FromNs: l.FromNs, ToNs: untilBack(&l)})
	}
	if len(herds) == 0 {
		return nil
	}
	var cost int64
	for _, k := range back {
		if k.Handshake != nil && !k.OpenedAheadOfUse(meanCallNs(callers)) {
			cost += k.OpeningNs()
		}
	}
	opening := facts.PercentilesOf(introduced(back), func(k *facts.Conn) int64 {
		return k.Opening().ToNs -
			k.Opening().FromNs
	})
	f, felt := openedTogether(n, callers, facts.MergeSpans(spells), cost, opening.P90, 0.93)
	if f == nil {
		return nil
	}
	f.supportHerds(n, herds)
	f.support(recording.SourceTap, fmt.Sprintf("a new connection then takes %s before its first command, one of ten "+
		"%s and more; a call takes %s", facts.Dur(opening.Median), facts.Dur(opening.P90),
		facts.Dur(meanCallNs(callers))),
		float64(opening.Median), "ns")
	if ops := facts.CommonHandshake(back); ops != "" {
		f.support(recording.SourceTap, "each introduces itself: "+ops, float64(len(back)), "connections")
	}
	if felt.Calls > 0 {
		f.support(n.CallSource(), fmt.Sprintf("%d of %d slow calls were under way between a loss and the last "+
			"connection "+
			"that was back, up to %s of one", felt.Calls, len(n.Ledger.Slow), facts.Dur(felt.MaxNs)),
			float64(felt.Calls),
			"calls")
	}
	f.Fix = herdFix(n)
	f.See = []string{"https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/BestPractices.Clients.Redis.Discovery.html", "https://github.com/redis/redis/pull/12178"}
	return f
}

// introduced are those whose handshake was seen; the others were opened ahead, and not used in the watch.
func introduced(conns []*facts.Conn) (out []*facts.Conn) {
	for _, k := range conns {
		if k.Handshake != nil || k.SlowHandshakeEndNs > 0 {
			out = append(out, k)
		}
	}
	return out
}

// untilBack is when the last of those that came back had its first reply.
func untilBack(l *facts.MassDisconnect) int64 {
	to := l.ToNs
	for _, k := range l.Reopened {
		to = max(to, k.Opening().ToNs)
	}
	return to
}

// meanCallNs is the mean time of a round trip of some callers.
func meanCallNs(callers []*facts.Caller) int64 {
	var ns, calls int64
	for _, c := range callers {
		ns, calls = ns+c.RoundTripNs()*c.AppCalls(), calls+c.AppCalls()
	}
	return ns / max(calls, 1)
}

func (f *Finding) supportHerds(n *facts.Node, herds []facts.MassDisconnect) {
	worst := herds[0]
	for _, h := range herds {
		if len(h.Reopened) > len(worst.Reopened) {
			worst = h
		}
	}
	f.support(recording.SourceTap, fmt.Sprintf("%d connections of %s were closed by the server's end within %s, %d "+
		"of them with a call under way", len(worst.Conns), facts.CallerNames(worst.Callers),
		facts.Dur(worst.ToNs-worst.FromNs),
		worst.WithCall),
		float64(len(worst.Conns)), "connections")
	openings := facts.Openings(worst.Reopened)
	f.support(recording.SourceTap, fmt.Sprintf("the same callers opened %d within %s, up to %d at the same moment",
		len(openings), facts.Dur(untilBack(&worst)-openings[0].FromNs), facts.MaxOverlap(openings)),
		float64(len(openings)),
		"connections")
	if len(herds) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("that happened %d times in the watch", len(herds)),
			float64(len(herds)), "times")
	}
	switch refused := n.RefusedDials(facts.Span{FromNs: worst.FromNs, ToNs: untilBack(&worst)}); {
	case n.RestartedDuring(worst.Span):
		f.support(recording.SourceServer, "the server was restarted then (run_id)", 1, "restarts")
		fallthrough
	case refused > 0:
		f.support(recording.SourceTap, fmt.Sprintf("%d dials found nobody listening and were made again: part of the "+
			"wait is the outage itself", refused), float64(refused), "dials")
	default:
		f.support(recording.SourceServer, "the server itself went on: somebody killed them (CLIENT KILL, a proxy, a "+
			"firewall), or they overran a limit", 0, "")
	}
}

// herdByCounters judges by what the server and slowpath's own connections tell.
func herdByCounters(n *facts.Node) *Finding {
	received := n.Info("total_connections_received")
	if len(received) < 3 {
		return nil
	}
	var usual []float64
	for i := 1; i < len(received); i++ {
		usual = append(usual, max(received[i].Value-received[i-1].Value, 0))
	}
	slices.Sort(usual)
	typical := stats.MedianUpper(usual)
	var spells facts.Spans
	most, restarts := 0.0, 0
	for i := 1; i < len(received); i++ {
		from, to := received[i-1].TimeNs, received[i].TimeNs
		came := received[i].Value - received[i-1].Value
		restarted := came < 0
		if restarted {
			came = received[i].Value
		}
		open, _ := n.Info("connected_clients").At(to)
		if came < facts.MinHerd+3*typical || open < came/3 || !restarted && !ownCut(n, facts.Span{
			FromNs: from,
			ToNs:   to,
		}) {
			continue
		}
		if most = max(most, came); restarted {
			restarts++
		}
		spells = append(spells, facts.Span{FromNs: from, ToNs: to})
	}
	if len(spells) == 0 {
		return nil
	}
	f := finding(n, n.ClaimOf(func(a account.Account) int64 {
		return spells.OverlapNs(a.Call.IntendedNs,
			a.Call.EndNs)
	}),
		0.65)
	if f.SlowCalls == 0 {
		return nil
	}
	f.support(recording.SourceServer, fmt.Sprintf("%.0f connections came within a second or two, where %.0f come as "+
		"a rule, and stayed (total_connections_received, connected_clients)", most, typical), most, "connections")
	if restarts > 0 {
		f.Confidence = 0.75
		f.support(recording.SourceServer, "the server was restarted right before", float64(restarts), "restarts")
	} else {
		f.support(recording.SourceProbe, "slowpath's own connections were cut right before", float64(len(spells)),
			"times")
	}
	f.doubt(recording.SourceServer, "whether callers waited for these connections, and whose they are, was not seen", 0,
		"")
	f.Fix = herdFix(n)
	f.See = []string{"https://github.com/redis/redis/pull/12178"}
	return f
}

// ownCut reports whether a connection of slowpath was closed by the other end in a stretch of time.
func ownCut(n *facts.Node, s facts.Span) bool {
	for _, e := range n.Rec.Events {
		if e.Kind == recording.KindError && e.Subject == n.Address && e.TimeNs >= s.FromNs && e.TimeNs <= s.ToNs &&
			isConnClosed(recording.DetailOf[recording.ErrorDetail](e)) {
			return true
		}
	}
	return false
}

func herdFix(n *facts.Node) []string {
	fix := []string{"Let callers come back spread over some seconds: a random part in the pause before each try " +
		"(jitter), growing from try to try"}
	fix = append(fix, remedy.For(n, remedy.SpreadReconnects, nil)...)
	if facts.ServerAtLeast(n, 7, 4) {
		fix = append(fix, "max-new-connections-per-cycle (10) and max-new-tls-connections-per-cycle (1) keep a herd "+
			"from starving those who are in, where the server has them (Redis 7.4 and newer, Valkey 8.0 and newer)")
	} else {
		fix = append(fix, "A server from Redis 7.4 or Valkey 8.0 on takes at most max-new-connections-per-cycle new "+
			"connections in a turn of its loop (TLS: max-new-tls-connections-per-cycle)")
	}
	return append(fix, "Fewer connections in all: smaller pools, or a proxy beside the callers that keeps its own")
}

// isConnClosed reports whether an error of slowpath's own says that the other end closed the connection.
func isConnClosed(d recording.ErrorDetail) bool {
	return strings.Contains(d.Message, "connection was closed before the reply")
}
