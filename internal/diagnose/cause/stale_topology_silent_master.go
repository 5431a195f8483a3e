package cause

import (
	"encoding/json"
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// staleTopology: a master is silent, another has its slots, and callers still wait for the old one: whoever says
// nothing sends no MOVED, and no connection ends. Catalogue D7.
var staleTopology = Cause{
	ID:    "stale-topology-silent-master",
	Title: "Callers go on waiting for a master that is silent, though another node has its slots",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: a server that is silent does not tell who waits for it",
		T1: "requests of clients that lie unread in the sockets of a stopped server, after CLUSTER NODES of the " +
			"others has another master for its slots",
		T2: "connections to the old master that are made, waited on and given up after that, by process; requests " +
			"that its host never acknowledged",
	},
	Explain: explainStaleTopology,
}

// settledIn is how long after a takeover was seen callers may still be on their way: the others hear of it within
// milliseconds, the server source sees it within its second, and a call that waits then may do so for another.
const settledIn = int64(2e9)

func explainStaleTopology(n *Node) *Finding {
	t, ok := n.takeover()
	if !ok || t.open || t.refused {
		return nil // whoever is refused knows at once
	}
	s := n.stuckAfter(t)
	if s.ns == 0 {
		return nil
	}
	var before int64 // what they lost until there was another to go to
	if t.downNs > 0 && t.takenNs > 0 {
		before = n.lostIn(span{t.downNs, t.takenNs})
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.95, ExcessShare: float64(s.ns) /
		float64(s.ns+before+n.Ledger.Users.ExcessNs)}
	if s.lasting { // it was so until the end, and no end of it in sight
		f.ExcessShare = max(f.ExcessShare, float64(s.ns)/float64(s.ns+n.Ledger.Users.ExcessNs),
			n.finding(n.claimSince(t), 1).ExcessShare)
	}
	f.supportStuck(n, t, s)
	if ms := n.nodeTimeoutMs(); ms > 0 && t.downNs > 0 && t.takenNs > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the failover itself took %s (cluster-node-timeout is %d ms)",
			dur(t.takenNs-t.downNs), ms), float64(t.takenNs-t.downNs), "ns")
	}
	f.Fix = staleTopologyFix(n, t)
	f.See = []string{
		"https://github.com/redis/lettuce/issues/2082",
		"https://github.com/redis/lettuce/wiki/Redis-Cluster#user-content-refreshing-the-cluster-topology-view",
		"https://man7.org/linux/man-pages/man7/tcp.7.html",
	}
	return f
}

// claimSince claims what calls to the old master waited since another had its slots; slowpath's own stand for those of
// others that wait.
func (n *Node) claimSince(t takeover) Claim {
	return n.claimOf(func(a account.Account) int64 {
		return max(0, a.Call.EndNs-max(a.Call.IntendedNs, t.takenNs, n.StartNs))
	})
}

// stuckAfter is who still waits for an old master when others have its slots, and had the time to tell.
func (n *Node) stuckAfter(t takeover) stuck {
	if t.open {
		return stuck{}
	}
	w := span{t.takenNs + settledIn, t.backNs}
	if t.takenNs == 0 { // so it was before the watch
		w.from = n.StartNs
	}
	if t.backNs == 0 {
		w.to = n.EndNs
	}
	s := stuck{who: tally{}}
	n.stuckUnread(w, &s)
	n.stuckConns(w, &s)
	return s
}

// stuck is who waits for a silent node in a stretch of time.
type stuck struct {
	ns      int64 // of waiting, each connection for itself
	who     tally // connections by caller
	unread  bool  // their requests were seen to lie unread
	dialled int   // connections that were made to it in that time
	givenUp int   // and were closed by their client, or without an answer
	longest int64 // of those waits
	lasting bool  // some waited to the end
}

// stuckUnread adds those whose requests lie in the server's sockets.
func (n *Node) stuckUnread(w span, s *stuck) {
	var before []recording.Unread
	servers, own, at := n.servers(), n.ownPIDs(), w.from
	count := func(to int64) {
		for _, u := range before {
			if servers[u.PID] || own[u.PID] || isServer(u.Comm) || to <= at {
				continue
			}
			name := u.Host
			if u.PID != 0 {
				name = fmt.Sprintf("%s[%d]", u.Comm, u.PID)
			}
			s.unread = true
			s.ns += int64(u.Connections) * (to - at)
			s.longest = max(s.longest, to-at)
			s.lasting = s.lasting || to == w.to
			s.who[name] = max(s.who[name], u.Connections)
		}
		at = max(at, to)
	}
	for _, snap := range n.Rec.Snapshots {
		if snap.Source != recording.SourceHost || snap.Subject != n.Address || snap.Name != recording.SnapshotUnread {
			continue
		}
		count(min(snap.TimeNs, w.to))
		before = nil
		_ = json.Unmarshal([]byte(snap.Body), &before) // a damaged snapshot is as good as none
	}
	count(w.to)
}

// stuckConns adds those whose connections the kernel source saw: made after the takeover and never answered, or given
// up while a call waited.
func (n *Node) stuckConns(w span, s *stuck) {
	for _, c := range n.users() {
		for _, k := range c.Conns {
			end := k.CloseNs
			if end == 0 || end > w.to {
				end = w.to
			}
			switch {
			case k.OpenNs >= w.from && k.OpenNs < w.to && k.Calls == 0:
				s.dialled++
				s.addWait(c, k.OpenNs, end)
				s.lasting = s.lasting || end == w.to
			case k.CloseNs > w.from && k.gaveUp() && k.CloseNs-k.IdleNs >= w.from-settledIn:
				s.addWait(c, max(w.from, k.CloseNs-k.IdleNs), end)
			default:
				continue
			}
			if k.CloseNs > 0 && k.By == recording.Client {
				s.givenUp++
			}
		}
	}
	for _, one := range n.silences() {
		if one.Again >= resentInVain && one.ToNs > w.from && one.SentNs >= w.from-settledIn {
			s.ns += one.ToNs - max(one.SentNs, w.from)
			s.longest = max(s.longest, one.ToNs-one.SentNs)
			s.who[one.Caller]++
		}
	}
}

func (s *stuck) addWait(c *Caller, from, to int64) {
	if to <= from {
		return
	}
	s.ns += to - from
	s.longest = max(s.longest, to-from)
	s.who[c.Name]++
}

func (f *Finding) supportStuck(n *Node, t takeover, s stuck) {
	source := recording.SourceTap
	if s.unread {
		source = recording.SourceHost
	}
	when := "which the others hold for failed since before the watch, its slots with another"
	if t.by != nil {
		when = fmt.Sprintf("though %s is the master of its %d slots since %s", t.by.Address, t.slots,
			ago(n.EndNs-t.takenNs))
	}
	f.support(source, fmt.Sprintf("callers wait for this node, %s: %s, connection by connection (%s)", when, dur(s.ns),
		s.who.list(3)), float64(s.ns), "ns")
	if s.unread {
		f.support(recording.SourceHost, "their requests lie unread in its sockets: the kernel of its host still "+
			"acknowledges them, so that no connection fails", 0, "")
	}
	if s.dialled > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d connections were made to it after that, and never had a "+
			"reply; %d were given up, after up to %s", s.dialled, s.givenUp, dur(s.longest)), float64(s.dialled),
			"connections")
	}
	if t.stopped > 0 {
		f.support(n.watcher(), fmt.Sprintf("its process was stopped for %s and more (a signal, a debugger or the "+
			"freezer)", dur(t.stopped)), float64(t.stopped), "ns")
	}
}

func ago(ns int64) string { return dur(ns) + " before the end of the watch" }

func staleTopologyFix(n *Node, t takeover) []string {
	fix := n.library(map[string]string{
		"lettuce": "Lettuce: ClusterTopologyRefreshOptions.builder().enablePeriodicRefresh(Duration.ofSeconds(60)).enableAllAdaptiveRefreshTriggers() (before 7.0 neither is on; triggers alone do not fire here, as no connection ends), SocketOptions.tcpUserTimeout(TcpUserTimeoutOptions.builder().enable().tcpUserTimeout(Duration.ofSeconds(20)).build()) for a host that is gone, and a command timeout (60 s by default)",
		"go-redis": "go-redis: ReadTimeout some hundred ms (3 s, from v9.22 on 5 s by default) and " +
			"ClusterOptions.ClusterStateReloadInterval: 10 * time.Second (v9.18 and later; from v9.22 on it is 60 s)",
		"jedis": "Jedis: topologyRefreshPeriod(Duration.ofSeconds(60)) (5.1 and later, off by default), and a " +
			"short socketTimeoutMillis (2 s by default)",
		"redis-py": "redis-py: socket_timeout (none before 8.0): only an error makes it ask for the map again",
		"ioredis": "ioredis: slotsRefreshInterval: 10000 (from v5 on off by default), redisOptions.commandTimeout " +
			"or socketTimeout (none by default)",
		"node-redis": "node-redis: commandOptions.timeout and socket.socketTimeout (off by default), " +
			"socket.pingInterval",
		"rueidis": "rueidis: ClusterOption.ShardsRefreshInterval (off by default), Dialer.KeepAlive and " +
			"ConnWriteTimeout",
		"redisson": "Redisson: scanInterval 5000, pingConnectionInterval 10000, a short timeout",
	}, "lettuce", "go-redis", "jedis", "redis-py", "ioredis", "node-redis", "rueidis", "redisson")
	fix = append(fix, "TCP_USER_TIMEOUT and keepalive end connections to a host that is gone; they do not help where "+
		"only its process is stopped: there a command timeout must")
	if t.stopped > 0 {
		fix = append(fix, "Find who stopped the process, and end it or let it go on (kill -CONT): as a replica it "+
			"would answer MOVED")
	} else {
		fix = append(fix, "End the old master or its host's network for good, so that connections to it break")
	}
	return fix
}
