package cause

import (
	"fmt"
	"slices"
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// shortLivedConnections: callers open a connection for a command or two and close it. Each pays a round trip and more
// before the first command, and the main thread accepts and closes instead of serving. Catalogue C1.
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

// Bounds of churn. Health checks open a few connections per second; a pool that grows opens many that stay.
const (
	churnSome  = 10.0  // connections per second that are closed again …
	churnShare = 0.15  // … when they are this part of what callers wait for
	churnMany  = 100.0 // connections per second that are a burden whatever else the server does …
	churnLong  = 200.0 // … unless each is used for this many commands
	// commands that a caller is taken to send on a connection that it does not keep, where others send most
	churnFew = 5.0
)

// Churn is the coming and going of connections, without slowpath's own.
type Churn struct {
	PerSecond    float64 // connections that were opened and closed again
	Commands     float64 // per such connection, all commands of the server counted
	PriceNs      int64   // of a fresh connection before its first command
	CallNs       int64   // of a command on a kept connection
	HandshakeTLS bool
	// of the application on such a connection, the one in the middle, as the kernel source saw them; 0: not seen
	Each float64
}

// many: so many come and go that some callers must open one for each few commands, even if others keep theirs and send
// most.
func (c Churn) many() bool {
	return c.PerSecond >= churnMany && c.Commands <= churnLong && c.Each <= churnFew
}

// share is the part of their time that callers of such connections spend on opening them.
func (c Churn) share() float64 {
	if c.PerSecond <= 0 {
		return 0
	}
	commands := max(c.Commands, 1)
	if c.many() {
		commands = min(commands, churnFew)
	}
	return float64(c.PriceNs) / (float64(c.PriceNs) + commands*float64(c.CallNs))
}

// matters: callers notice it, or the server does.
func (c Churn) matters() bool { return c.PerSecond >= churnSome && c.share() >= churnShare || c.many() }

func explainShortLived(n *Node) *Finding {
	c := n.churn()
	share := c.share()
	if !c.matters() {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: share, Confidence: 0.9}
	f.support(recording.SourceServer, fmt.Sprintf("%.0f connections per second were opened and closed again, %.1f "+
		"commands on each (total_connections_received; slowpath's own are not counted)", c.PerSecond, c.Commands),
		c.PerSecond, "per second")
	if clients, ok := n.Info("connected_clients").Last(); ok {
		f.support(recording.SourceServer, fmt.Sprintf("only %.0f are open at a time (connected_clients)", clients),
			clients, "connections")
	}
	what := "connect"
	if c.HandshakeTLS {
		what = "connect and TLS handshake"
	}
	if _, ok := n.Ledger.Path(n.Address, "fresh"); ok {
		f.support(recording.SourceProbe, fmt.Sprintf("a new connection costs %s before its first command (%s), a "+
			"command on an open one %s: %.0f %% of what callers wait for", dur(c.PriceNs), what, dur(c.CallNs),
			share*100), float64(c.PriceNs), "ns")
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
	if found, _, _ := mostOf(slices.DeleteFunc(n.pooled(n.callers()), func(r redial) bool {
		return !r.overflows() ||
			!r.reused()
	})); len(found) > 0 {
		f.Confidence -= 0.2
		f.doubt(recording.SourceTap, fmt.Sprintf("%s has a pool: some of its connections are used again and again, "+
			"others are closed after a call or two", callerNames(found)), float64(len(found)), "processes")
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

// supportShortLived says what the kernel source saw of connections that were opened and closed again in the watch:
// whose they were, and what for.
func (f *Finding) supportShortLived(n *Node) {
	byWho := map[string]int64{}
	var ages []int64
	var calls, closed int64
	for _, e := range n.Events(recording.SourceTap, recording.KindClose) {
		d := recording.DetailOf[recording.ConnDetail](e)
		if d.AgeNs <= 0 || d.Side != recording.Server {
			continue // each is seen from both ends where its client is on this host
		}
		closed++
		calls += d.Calls
		ages = append(ages, d.AgeNs)
		who := hostOf(d.Client)
		if d.Comm != "" {
			who = d.Comm
		}
		byWho[who]++
	}
	if closed < minClosed {
		return
	}
	sort.Slice(ages, func(i, j int) bool { return ages[i] < ages[j] })
	who := sortedByNs(byWho)[0]
	f.support(recording.SourceTap, fmt.Sprintf("%d connections were made and closed in the watch, with %.1f commands "+
		"each, half of them within %s; %.0f %% of them by %s", closed,
		float64(calls)/float64(closed), dur(ages[len(ages)/2]), 100*float64(byWho[who])/float64(closed), who),
		float64(closed), "connections")
}

// minClosed connections are worth a line of evidence.
const minClosed = 10

// churn counts connections that came and went. Those that stayed are a pool that grows.
func (n *Node) churn() Churn {
	if n.churned == nil {
		c := n.findChurn()
		n.churned = &c
	}
	return *n.churned
}

func (n *Node) findChurn() Churn {
	received, connected := n.Info("total_connections_received"), n.Info("connected_clients")
	if len(received) < 2 {
		return Churn{}
	}
	from, to := received[0].TimeNs, received[len(received)-1].TimeNs
	seconds := max(float64(to-from)/1e9, 1e-9)
	own := n.ownCalls(from, to)
	stayed := 0.0
	if len(connected) > 0 {
		stayed = max(connected[len(connected)-1].Value-connected[0].Value, 0)
	}
	gone := received.Growth() - stayed - own.fresh
	c := Churn{PerSecond: max(gone, 0) / seconds}
	commands := n.Growth("total_commands_processed") - 2*own.fresh - own.kept - ownPerPoll*n.Growth("self.polls")
	c.Commands = max(commands, 0) / max(gone, 1)
	var closed []*Conn
	for _, caller := range n.callers() {
		closed = append(closed, caller.conns(func(k *Conn) bool { return k.OpenNs > 0 && k.CloseNs > 0 })...)
	}
	if len(closed) >= minClosed {
		c.Each = float64(spreadOf(closed, (*Conn).work).mid)
	}
	c.PriceNs, c.CallNs, c.HandshakeTLS = n.prices()
	return c
}

// ownPerPoll is about how many commands a poll of the server source sends.
const ownPerPoll = 4

type ownCalls struct{ fresh, kept float64 }

// ownCalls counts the probe's calls in a stretch of time: each fresh one is a connection that the server counts.
func (n *Node) ownCalls(from, to int64) (o ownCalls) {
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.StartNs < from || c.StartNs >= to {
			continue
		}
		if c.Conn == "fresh" {
			o.fresh++
		} else {
			o.kept++
		}
	}
	return o
}

// Where the probe made no fresh or no kept calls: a connection costs about one and a half commands on any path.
const (
	assumedPriceNs = int64(150_000)
	assumedCallNs  = int64(100_000)
)

// prices are what the probe paid, in the median: for a connection (connect, TLS, and what its first reply took longer
// than one on an open connection: the server had to accept it) and for a command on an open one.
func (n *Node) prices() (connectionNs, callNs int64, tls bool) {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	var opening []int64
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.Conn != "fresh" || c.Error != "" {
			continue
		}
		var ns int64
		for _, s := range n.Rec.Segments[c.ID] {
			switch s.State {
			case account.Dial:
				ns += s.ToNs - s.FromNs
			case account.TLS:
				ns += s.ToNs - s.FromNs
				tls = true
			case account.Handshake:
				ns += max(0, s.ToNs-s.FromNs-kept.P50Ns)
			}
		}
		opening = append(opening, ns)
	}
	if len(opening) == 0 || !ok || kept.P50Ns <= 0 {
		return assumedPriceNs, assumedCallNs, tls
	}
	sort.Slice(opening, func(i, j int) bool { return opening[i] < opening[j] })
	return opening[len(opening)/2], kept.P50Ns, tls
}

// pooling is what keeps connections, by library.
var (
	pooling = map[string]string{
		"redis-py": "redis-py: make one redis.Redis (or ConnectionPool) per process and share it; do not call " +
			"close() per request",
		"go-redis": "go-redis: make one redis.NewClient per process and share it; PoolSize and MinIdleConns as " +
			"the concurrency needs",
		"redigo": "redigo: one Pool per process, with MaxIdle as high as the callers are many: it is 0 unless " +
			"set, and then every Close really closes",
		"rueidis": "rueidis: one rueidis.NewClient per process; its connections are shared",
		"jedis": "Jedis: JedisPooled (one per process) in place of new Jedis(…) per call; maxIdle equal to " +
			"maxTotal in the pool's configuration",
		"lettuce": "Lettuce: one RedisClient and one StatefulRedisConnection per process; connections are " +
			"shared by threads",
		"redisson":      "Redisson: one RedissonClient per process",
		"ioredis":       "ioredis: one new Redis(…) per process, not per request",
		"node-redis":    "node-redis: createClient once per process, connect() once",
		"phpredis":      "phpredis: pconnect() in place of connect() (and pooling: redis.pconnect.pooling_enabled=1)",
		"predis":        "Predis: 'persistent' => true in the connection's parameters",
		"stackexchange": "StackExchange.Redis: one ConnectionMultiplexer per process",
	}
	poolingOrder = []string{
		"redis-py", "go-redis", "redigo", "rueidis", "jedis", "lettuce", "redisson", "ioredis",
		"node-redis", "phpredis", "predis", "stackexchange",
	}
)

func shortLivedFix(n *Node, c Churn) []string {
	fix := n.library(pooling, poolingOrder...)
	if len(fix) == len(poolingOrder) { // nothing tells which library it is
		fix = []string{"Keep connections: one client object with a pool per process, made at its start (redis-py " +
			"ConnectionPool, go-redis Client, JedisPooled, phpredis pconnect; redigo: MaxIdle is 0 unless set, and " +
			"then every Close really closes)"}
	}
	if who := n.crowdedHosts(); who != "" {
		fix = append(fix, "Look at the callers on "+who+" first")
	}
	if c.HandshakeTLS {
		fix = append(fix, "Where connections cannot be kept: TLS session resumption (tls-session-caching yes, its "+
			"default) and a TLS proxy beside the caller")
	}
	return fix
}

// crowdedHosts are the addresses that most of the clients come from.
func (n *Node) crowdedHosts() string {
	counts := map[string]int{}
	for _, c := range n.Clients() {
		counts[hostOf(c.Addr)]++
	}
	best := ""
	for h, k := range counts {
		if best == "" || k > counts[best] || k == counts[best] && h < best {
			best = h
		}
	}
	return best
}
