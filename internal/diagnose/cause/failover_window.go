package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// failoverWindow: a master is gone, and until the others have given it up and elected its replica nobody serves its
// slots. Catalogue K3.
var failoverWindow = Cause{
	ID:    "failover-window",
	Title: "A master fell silent, and nobody served its slots until a replica had taken over",
	Layer: "server",
	Needs: Needs{
		T0: "a node that stops answering, and one that was its replica and is a master then (INFO role, CLUSTER " +
			"NODES), or cluster_slots_pfail and cluster_slots_fail at the others; CLUSTERDOWN errors",
		T1: "why it fell silent: the process has ended, or was stopped",
		T2: "the connections that its end closed, and those that were refused in the meantime, by process",
	},
	Explain: explainFailover,
}

func explainFailover(n *Node) *Finding {
	t, ok := n.takeover()
	if !ok {
		return explainOrphan(n)
	}
	if !t.open && t.takenNs == 0 {
		return explainReplaced(n, t)
	}
	window := span{t.fromNs(n.Case), t.endNs(n.Case)}
	f := n.finding(n.keptWaiting(t), 0.95)
	lost := n.lostIn(window)
	f.ExcessShare = max(f.ExcessShare, float64(lost)/float64(max(lost+n.Ledger.Users.ExcessNs, 1)))
	if f.ExcessShare == 0 {
		return nil // it had no callers
	}
	if s := n.stuckAfter(t); s.ns > 0 { // for them the window has another end, and another reason
		f.ExcessShare *= float64(lost) / float64(lost+s.ns)
		f.doubt(recording.SourceTap, fmt.Sprintf("callers waited for the old master for another %s after that, "+
			"connection by connection", dur(s.ns)), float64(s.ns), "ns")
	}
	f.supportTakeover(n, t)
	f.supportSilence(n, t)
	f.doubtAfterwards(n, t)
	f.supportNodeTimeout(n)
	f.supportClusterDown(n)
	f.supportUsersOf(n, window)
	f.Fix = failoverFix(n, t)
	f.See = failoverSee
	return f
}

var failoverSee = []string{"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#failure-detection", "https://github.com/redis/jedis/issues/1512"}

// explainReplaced is of a master that still answered when the watch was prepared, and had been replaced when it began:
// what waits for it is slowpath's own probe.
func explainReplaced(n *Node, t takeover) *Finding {
	cl := n.keptWaiting(t)
	if cl.Calls == 0 || n.stuckAfter(t).ns > 0 {
		return nil
	}
	f := n.finding(cl, 0.6)
	f.Title = "A master had fallen silent and been replaced when the watch began"
	f.support(recording.SourceServer, "the others hold it for failed, and its slots are another's already (CLUSTER "+
		"NODES): the failover is over", 0, "")
	f.supportSilence(n, t)
	f.supportNodeTimeout(n)
	f.doubt(recording.SourceTap, "what callers lost by it was before the watch; none is seen to wait for it now", 0, "")
	f.Fix, f.See = failoverFix(n, t), failoverSee
	return f
}

// explainOrphan is of a master that could not be reached when the watch began, by what its replica tells.
func explainOrphan(n *Node) *Finding {
	t, master, ok := n.orphan()
	if !ok {
		return nil
	}
	w := span{t.fromNs(n.Case), t.endNs(n.Case)}
	lost := w.to - w.from // of at least one caller
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.75, ExcessShare: float64(lost) /
		float64(max(lost+n.Ledger.Users.ExcessNs, 1))}
	if t.open {
		f.Title = "A master fell silent, and nobody has taken over its slots yet"
		f.support(recording.SourceServer, fmt.Sprintf("its master %s was gone when the watch began, and %s later "+
			"nobody had taken over its %d slots (INFO master_link_status, role)", master, dur(lost), t.slots),
			float64(lost), "ns")
	} else {
		f.support(recording.SourceServer, fmt.Sprintf("its master %s was gone when the watch began; it was seen as "+
			"the master of its %d slots itself %s later (INFO role)", master, t.slots, dur(lost)), float64(lost), "ns")
	}
	if f.supportNodeTimeout(n); f.supportClusterDown(n) {
		f.Confidence = 0.9
	} else {
		f.doubt(recording.SourceServer, "whether anybody called it meanwhile is not seen: it could not be watched", 0,
			"")
	}
	f.Fix, f.See = failoverFix(n, t), failoverSee
	return f
}

// keptWaiting claims what calls to the old master waited while nobody had taken over. Slowpath's own go on after that:
// it watches that node, and not its slots.
func (n *Node) keptWaiting(t takeover) Claim {
	until := t.endNs(n.Case)
	end := max(until, t.backNs)
	if t.backNs == 0 {
		end = n.EndNs
	}
	return n.claimOf(func(a account.Account) (ns int64) {
		to := until
		if a.Call.Source != recording.SourceTap {
			to = end
		}
		return max(0, min(a.Call.EndNs, to)-max(a.Call.IntendedNs, t.fromNs(n.Case)))
	})
}

// lostIn is the time that callers lost in a stretch: all of it on each connection that they had in use when it began. A
// call that is tried again at once has no place where it waits, but nor has its caller what it asked for.
func (n *Node) lostIn(w span) (ns int64) {
	for _, c := range n.users() {
		used := 0
		for _, k := range c.Conns {
			if k.work() > 0 && k.OpenNs < w.from && (k.CloseNs == 0 || k.CloseNs >= w.from) {
				used++
			}
		}
		ns += int64(used) * (w.to - w.from)
	}
	s := stuck{who: tally{}}
	n.stuckUnread(w, &s)
	return max(ns, s.ns)
}

func (f *Finding) supportTakeover(n *Node, t takeover) {
	slots := "its place"
	if t.slots > 0 {
		slots = fmt.Sprintf("its %d slots", t.slots)
	}
	took := t.endNs(n.Case) - t.fromNs(n.Case)
	if t.open {
		f.Title, f.Confidence = "A master fell silent, and nobody has taken over its slots yet", 0.7
		if t.refused {
			f.Confidence = 0.85
		}
		why := "though others suspect it (cluster_slots_pfail, cluster_slots_fail)"
		if t.slots == 0 {
			f.Title, f.Confidence = "A master is gone, and no replica that is watched has taken its place", 0.6
			why = "though it had replicas (INFO connected_slaves)"
			f.doubt(recording.SourceServer, "whether a replica has taken over is not seen: name its replicas as "+
				"further targets", 0, "")
		}
		f.support(recording.SourceServer, fmt.Sprintf("it has not answered since %s before the end of the watch, and "+
			"nobody has taken over %s by then, %s", dur(took), slots, why), float64(took), "ns")
		return
	}
	f.support(recording.SourceServer, fmt.Sprintf("it did not answer any more, and its replica %s was seen as the "+
		"master of %s %s later (INFO role)", t.by.Address, slots, dur(took)), float64(took), "ns")
}

// supportSilence says why it fell silent, and how long the others took to notice.
func (f *Finding) supportSilence(n *Node, t takeover) {
	switch {
	case t.stopped > 0:
		f.support(n.watcher(), fmt.Sprintf("its process was stopped for %s and more of that (a signal, a debugger or "+
			"the freezer)", dur(t.stopped)), float64(t.stopped), "ns")
	case t.refused:
		f.support(recording.SourceProbe, fmt.Sprintf("nothing listened at its address then: %d connections were "+
			"refused, so its process had ended", n.turnedAway(t.downNs)), float64(n.turnedAway(t.downNs)),
			"connections")
	default:
		f.doubt(recording.SourceProbe, "why it fell silent is not seen: neither was its port closed, nor its process "+
			"watched", 0, "")
		f.Confidence -= 0.05
	}
}

// silentConfidence is that of a window behind which the old master stays silent where nobody saw who still waits for
// it.
const silentConfidence = 0.55

// doubtAfterwards: whoever is refused goes elsewhere, but an old master that only keeps silent may hold its callers
// long after the window, and a connection to it does not tell.
func (f *Finding) doubtAfterwards(n *Node, t takeover) {
	if t.open || t.refused || t.backNs > 0 || t.stopped > 0 || n.Hosted() || n.Rec.Used(recording.SourceTap) {
		return
	}
	f.Confidence = min(f.Confidence, silentConfidence)
	f.doubt(recording.SourceProbe, "the old master is silent still: whether callers go on waiting for it now, by an "+
		"old map, is seen only with the files of its host or the kernel source", 0, "")
}

func (f *Finding) supportNodeTimeout(n *Node) {
	if ms := n.nodeTimeoutMs(); ms > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("cluster-node-timeout is %d ms: only after that do the others "+
			"suspect a node, then agree and vote, which takes a second or two more", ms), float64(ms), "ms")
	}
}

// nodeTimeoutMs is cluster-node-timeout of any node that tells it, in milliseconds; 0 where there is no cluster.
func (n *Node) nodeTimeoutMs() int {
	if len(n.views) == 0 && n.slotsBefore() == 0 {
		return 0
	}
	for _, one := range append([]*Node{n}, n.Nodes...) {
		if ms := one.configInt("cluster-node-timeout"); ms > 0 {
			return ms
		}
	}
	return 0
}

// supportClusterDown counts the calls that other nodes refused meanwhile, which they do as long as any slot is without
// a master.
func (f *Finding) supportClusterDown(n *Node) bool {
	var refused float64
	for _, one := range n.Nodes {
		counted, _ := one.errorsOf("CLUSTERDOWN")
		refused += counted
	}
	if refused > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the other nodes refused %.0f calls with CLUSTERDOWN "+
			"meanwhile, those for slots of their own among them (cluster-require-full-coverage)", refused), refused,
			"calls")
	}
	return refused > 0
}

// supportUsersOf says what became of those who were connected.
func (f *Finding) supportUsersOf(n *Node, w span) {
	var callers []*Caller
	closed, waiting := 0, 0
	for _, c := range n.users() {
		gone := c.conns(func(k *Conn) bool { return k.CloseNs >= w.from && k.CloseNs <= w.to+1e9 })
		for _, k := range gone {
			waiting += k.Waiting
		}
		if closed += len(gone); len(gone) > 0 {
			callers = append(callers, c)
		}
	}
	if closed > 0 {
		text := fmt.Sprintf("%d connections of its callers ended with it (%s)", closed, callerNames(callers))
		if waiting > 0 {
			text += fmt.Sprintf(", and %d calls on them had no reply", waiting)
		}
		f.support(recording.SourceTap, text, float64(closed), "connections")
	}
	refused := tally{}
	for _, e := range n.Events(recording.SourceTap, recording.KindClose) {
		if d := recording.DetailOf[recording.ConnDetail](e); d.Reason == recording.CloseRefused &&
			d.Side == recording.Client && e.TimeNs >= w.from && e.TimeNs <= w.to {
			refused[fmt.Sprintf("%s[%d]", d.Comm, d.PID)]++
		}
	}
	if all := refused.sum(); all > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d new connections were tried in vain (%s)", all, refused.list(3)),
			float64(all), "connections")
	}
}

// slowToGiveUpMs is the cluster-node-timeout above which a shorter one is worth a thought. The default is 15 s; below 5
// s a fork, a slow disk or a long command can be taken for a failure.
const slowToGiveUpMs = 5000

func failoverFix(n *Node, t takeover) []string {
	var fix []string
	switch {
	case t.stopped > 0:
		fix = append(fix, "Find who stopped the process (SIGSTOP, a debugger, docker pause, a snapshot of the machine)")
	case t.refused:
		fix = append(fix, "Find out why the process ended: its log, journalctl -u, dmesg | grep -i 'out of memory'")
	default:
		fix = append(fix, "Find out why it fell silent: its host, its network, its log")
	}
	fix = append(fix, "Before a planned restart hand over first: CLUSTER FAILOVER at the replica (Sentinel: SENTINEL "+
		"FAILOVER), which takes milliseconds")
	switch ms := n.nodeTimeoutMs(); {
	case ms > slowToGiveUpMs:
		fix = append(fix, fmt.Sprintf("CONFIG SET cluster-node-timeout %d at every node, %d ms now: the window is "+
			"about that and a second or two (not below the longest stall of a node that is well)", slowToGiveUpMs, ms))
	case ms == 0 && t.by != nil && t.slots == 0:
		fix = append(fix, "SENTINEL SET NAME down-after-milliseconds 5000 at every Sentinel (30 s by default)")
	}
	if t.open {
		fix = append(fix, "See that every master has a replica that may take over (cluster-replica-validity-factor, "+
			"cluster-replica-no-failover), and that most masters live")
	}
	if v, ok := n.coverage(); ok && v == "yes" {
		fix = append(fix, "CONFIG SET cluster-require-full-coverage no: the other masters go on serving their own "+
			"slots meanwhile")
	}
	return append(fix, n.library(map[string]string{
		"lettuce": "Lettuce: ClusterTopologyRefreshOptions.builder().enableAllAdaptiveRefreshTriggers() (from 7.0 " +
			"on by default), SocketOptions.tcpUserTimeout, and TimeoutOptions.enabled() with commands of some " +
			"hundred ms",
		"jedis": "Jedis: a short socketTimeoutMillis, and maxAttempts with maxTotalRetriesDuration longer than " +
			"the window (JedisCluster, RedisClusterClient)",
		"go-redis": "go-redis: ReadTimeout some hundred ms; MaxRetries with MinRetryBackoff and MaxRetryBackoff (8 " +
			"ms and 512 ms) end long before the window does, so that callers must be ready for errors",
		"redis-py": "redis-py: cluster_error_retry_attempts, or Retry(ExponentialBackoff(cap=1), …) that lasts " +
			"longer than the window; socket_timeout",
		"ioredis": "ioredis: retryDelayOnClusterDown, retryDelayOnFailover (100 ms each) and maxRedirections " +
			"(16): together they must last longer than the window",
		"node-redis": "node-redis: maxCommandRedirections, and socket.reconnectStrategy",
		"rueidis":    "rueidis: Dialer.Timeout and ConnWriteTimeout; it tries again until the context ends",
	}, "lettuce", "jedis", "go-redis", "redis-py", "ioredis", "node-redis", "rueidis")...)
}

// coverage is cluster-require-full-coverage of any node that tells it.
func (n *Node) coverage() (string, bool) {
	for _, one := range n.Nodes {
		if v, ok := one.Config("cluster-require-full-coverage"); ok {
			return v, true
		}
	}
	return "", false
}
