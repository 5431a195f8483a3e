package cause

import (
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// shortLivedConnections: callers open a connection for a command or two and close it. Each pays a round trip and more
// before the first command, and the main thread accepts and closes instead of serving.
var shortLivedConnections = Cause{
	ID:      "short-lived-connections",
	Options: []remedy.Topic{remedy.OneClient},
	// A refused caller comes back with another connection. A pool that keeps too few opens new ones for others' calls.
	// Callers that all lost their connections come back together.
	After: []string{
		"reconnect-herd",
		"maxclients", "pool-maxidle-churn", "cmdinfo-once-lock", "tls-handshake-storm",
		"topology-refresh-storm", "replica-loading-or-readonly-routing", "failover-window",
	},
	Explain: explainShortLived,
}

func explainShortLived(n *facts.Node) *Finding {
	c := connection.ChurnOf(n)
	if !c.Matters() {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.loseByChurn(n, c)
	f.support(recording.SourceServer, c.PerSecond, "per second",
		"%.0f connections per second were opened and closed, %.1f commands on each "+
			"(total_connections_received; slowpath's own are not counted)", c.PerSecond, c.CommandsPerConn)
	if clients, ok := n.Series(series.ConnectedClients).Last(); ok {
		f.support(recording.SourceServer, clients, "connections",
			"only %.0f open at a time (connected_clients)", clients)
	}
	what := "connect"
	if c.TLS {
		what = "connect and TLS handshake"
	}
	if c.Greets {
		what += ", and a round trip for HELLO, AUTH or CLIENT SETINFO"
	}
	if _, ok := n.Ledger.Path(n.Address, "fresh"); ok {
		f.support(recording.SourceProbe, float64(c.OpeningNs), "ns", "a new connection costs %s before its first "+
			"command (%s), a command on an open one %s: %.0f %% of what callers wait for", format.Brief(c.OpeningNs),
			what, format.Brief(c.CallNs), c.Share()*100)
	}
	if most, ok := n.Series(series.SockTimeWait).Max(); ok && most >= c.PerSecond {
		f.support(recording.SourceHost, most, "sockets", "%s of its network namespace in TIME_WAIT",
			counted(most, "socket"))
	}
	f.supportShortLived(n)
	if found := connection.SumRedials(slices.DeleteFunc(connection.PoolRedials(n, caller.Callers(n)),
		func(r connection.Redial) bool {
			return !r.PoolOverflows() || !r.Reused()
		})).Callers; len(found) > 0 {
		f.doubt(recording.SourceTap, float64(len(found)), "processes", "%s has a pool: some of its connections are "+
			"reused, others are closed after a call or two", caller.CallerNames(found))
	}
	f.FixSteps = shortLivedFix(n, c)
	return f
}

func shortLivedFix(n *facts.Node, c connection.Churn) []remedy.Step {
	steps := oneClient(n)
	if who := crowdedHosts(n); who != "" {
		steps = because(steps, "Most callers are on "+format.Name(who))
	}
	if c.TLS {
		steps = append(steps, orElse(change("tls-proxy", "Where connections cannot be kept: a proxy on the callers' "+
			"host that keeps TLS connections, or TLS session resumption (tls-session-caching yes, the server's "+
			"default)")))
	}
	return steps
}

// crowdedHosts are the addresses that most of the clients come from.
func crowdedHosts(n *facts.Node) string {
	counts := map[string]int{}
	for _, c := range caller.Clients(n) {
		counts[caller.HostTextOf(n.Case, c.Addr)]++
	}
	best := ""
	for h, k := range counts {
		if best == "" || k > counts[best] || k == counts[best] && h < best {
			best = h
		}
	}
	return best
}
