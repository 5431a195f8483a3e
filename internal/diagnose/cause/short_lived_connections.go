package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// shortLivedConnections: callers open a connection for a command or two and close it. Each pays a round trip and more
// before the first command, and the main thread accepts and closes instead of serving.
var shortLivedConnections = Cause{
	ID:    "short-lived-connections",
	Title: "Callers open a new connection for every few commands",
	Layer: "client",
	Needs: Needs{
		T0: "total_connections_received growing with the commands while connected_clients stays low; the price of a " +
			"fresh connection by the probe",
		T1: "sockets in TIME_WAIT",
		T2: "each connection that was opened and closed: which process, how long it took, how many commands it was " +
			"used for",
	},
	// Who is refused comes back with another connection. A pool that keeps too few makes new ones for others' calls.
	After: []string{
		"maxclients", "pool-maxidle-churn", "cmdinfo-once-lock", "tls-handshake-storm",
		"topology-refresh-storm", "replica-loading-or-readonly-routing", "failover-window",
	},
	Explain: explainShortLived,
}

func explainShortLived(n *facts.Node) *Finding {
	c := n.Churn()
	share := c.Share()
	if !c.Matters() {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: share, Confidence: 0.9}
	f.support(recording.SourceServer, fmt.Sprintf("%.0f connections per second were opened and closed again, %.1f "+
		"commands on each (total_connections_received; slowpath's own are not counted)", c.PerSecond,
		c.CommandsPerConn),
		c.PerSecond, "per second")
	if clients, ok := n.Info("connected_clients").Last(); ok {
		f.support(recording.SourceServer, fmt.Sprintf("only %.0f are open at a time (connected_clients)", clients),
			clients, "connections")
	}
	what := "connect"
	if c.TLS {
		what = "connect and TLS handshake"
	}
	if _, ok := n.Ledger.Path(n.Address, "fresh"); ok {
		f.support(recording.SourceProbe, fmt.Sprintf("a new connection costs %s before its first command (%s), a "+
			"command on an open one %s: %.0f %% of what callers wait for", facts.Dur(c.OpeningNs), what,
			facts.Dur(c.CallNs),
			share*100), float64(c.OpeningNs), "ns")
	}
	if tw := n.Host("sock.time_wait"); len(tw) > 0 {
		most, _ := tw.Max()
		if most >= c.PerSecond {
			f.Confidence = 0.95
			f.support(recording.SourceHost, fmt.Sprintf("%.0f sockets of its network namespace are in TIME_WAIT", most),
				most, "sockets")
		}
	}
	f.supportShortLived(n)
	if found := facts.SumRedials(slices.DeleteFunc(n.PoolRedials(n.Callers()), func(r facts.Redial) bool {
		return !r.PoolOverflows() ||
			!r.Reused()
	})).Callers; len(found) > 0 {
		f.Confidence -= 0.2
		f.doubt(recording.SourceTap, fmt.Sprintf("%s has a pool: some of its connections are used again and again, "+
			"others are closed after a call or two", facts.CallerNames(found)), float64(len(found)), "processes")
	}
	if n.Growth("rejected_connections") > 0 {
		f.doubt(recording.SourceServer, fmt.Sprintf("%.0f connections were refused (maxclients): callers that were "+
			"refused try again", n.Growth("rejected_connections")), n.Growth("rejected_connections"), "connections")
	}
	f.Fix = shortLivedFix(n, c)
	f.See = []string{
		"https://redis.io/docs/latest/develop/reference/clients/",
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
	}
	return f
}

func shortLivedFix(n *facts.Node, c facts.Churn) []string {
	fix := remedy.For(n, remedy.OneClient, nil)
	if len(fix) == remedy.All(remedy.OneClient) { // nothing tells which library it is
		fix = []string{"Keep connections: one client object with a pool per process, made at its start (redis-py " +
			"ConnectionPool, go-redis Client, JedisPooled, phpredis pconnect; redigo: MaxIdle is 0 unless set, and " +
			"then every Close really closes)"}
	}
	if who := crowdedHosts(n); who != "" {
		fix = append(fix, "Look at the callers on "+who+" first")
	}
	if c.TLS {
		fix = append(fix, "Where connections cannot be kept: TLS session resumption (tls-session-caching yes, its "+
			"default) and a TLS proxy beside the caller")
	}
	return fix
}

// crowdedHosts are the addresses that most of the clients come from.
func crowdedHosts(n *facts.Node) string {
	counts := map[string]int{}
	for _, c := range n.Clients() {
		counts[facts.HostOf(c.Addr)]++
	}
	best := ""
	for h, k := range counts {
		if best == "" || k > counts[best] || k == counts[best] && h < best {
			best = h
		}
	}
	return best
}
