package cause

import (
	"fmt"

	"slowpath/internal/recording"
	"slowpath/internal/stacks"
)

// poolLeak: the application takes connections out of the pool and does not give them back. The pool dials others, until it may not any more.
// Catalogue B7.
var poolLeak = Cause{
	ID:    "pool-leak",
	Title: "The application does not give connections back: they lie idle outside of the pool, and it dials others until it is empty",
	Layer: "client",
	Needs: Needs{
		T0: "connected_clients rising steadily, and a CLIENT LIST in which most have not been used since they were new; with --pprof: callers that wait in the pool while connections lie idle",
		T2: "new connections right before calls while others of the same process lie idle and are never used again",
	},
	Explain: explainLeak,
	Whole:   leakSeen,
}

// Bounds of a leak. One connection that is kept aside is a subscriber or a lock's.
const (
	leakLeast   = minRedials
	leakRestNs  = int64(100e6) // since its last call: longer than callers hold a connection between two calls of one piece of work
	leakKnownNs = int64(2e9)   // before the end of the watch: what is used after the last look at it only seems unused
	leakOpening = 0.5          // of the openings happened beside an idle connection
)

// leak is what a caller has lost of its connections.
type leak struct {
	*Caller
	lost  []*Conn // open and not used again, though the pool had to open others
	fresh []*Conn // those it opened on the way of calls, most of them beside lost ones
}

// lastUse is when the last call of a connection ended, as far as is known: its use is looked at once a second.
func (k *Conn) lastUse() int64 {
	at := k.opening().to
	for i, u := range k.use {
		if i == 0 && u.calls > 0 || i > 0 && u.calls > k.use[i-1].calls {
			at = max(at, u.at)
		}
	}
	return at
}

// restingSince has the connections that are still open at the end, and when each was used for the last time.
func (c *Caller) restingSince() map[*Conn]int64 {
	out := map[*Conn]int64{}
	for _, k := range c.Conns {
		used := k.work() > 0 || k.Greeting != nil
		if used && k.CloseNs == 0 && k.CutNs == 0 && (k.OpenNs > 0 || len(k.use) > 0) {
			out[k] = k.lastUse()
		}
	}
	return out
}

func (n *Node) leaks(callers []*Caller) (out []leak) {
	driven := map[*Conn]bool{}
	for _, l := range n.lossesAtOnce(callers) {
		for _, k := range l.back {
			driven[k] = true
		}
	}
	for _, c := range callers {
		l := leak{Caller: c}
		opened := c.opened()
		aside := c.restingSince()
		beside := 0
		for _, k := range opened {
			if k.ahead(c.callNs()) || k.Greeting == nil || driven[k] || k.OpenNs > n.EndNs-leakKnownNs {
				continue
			}
			for o, since := range aside {
				if o != k && since+leakRestNs < k.OpenNs-k.DialNs {
					l.lost = append(l.lost, o)
					delete(aside, o)
				}
			}
			l.fresh = append(l.fresh, k)
			if len(l.lost) > 0 {
				beside++
			}
		}
		if len(l.lost) >= leakLeast && beside >= leakLeast && float64(beside) >= leakOpening*float64(len(opened)) {
			out = append(out, l)
		}
	}
	return out
}

func explainLeak(n *Node) *Finding {
	callers := n.callers()
	if len(callers) == 0 {
		return n.leakByCounters()
	}
	all := n.leaks(callers)
	if len(all) == 0 {
		return nil
	}
	var cost int64
	worst := all[0]
	for _, l := range all {
		for _, k := range l.fresh {
			cost += k.openingNs()
		}
		if len(l.lost) > len(worst.lost) {
			worst = l
		}
	}
	f := n.losses(callers).finding(n, cost, 0.9)
	if f == nil {
		return nil
	}
	f.support(recording.SourceTap, fmt.Sprintf("%s opened %d connections right before calls while others of its own lay idle: %d of those were never used again, and never closed", worst.Name, len(worst.fresh), len(worst.lost)),
		float64(len(worst.lost)), "connections")
	work := spreadOf(worst.lost, (*Conn).work)
	f.support(recording.SourceTap, fmt.Sprintf("they had had %d to %d calls; a pool gives an idle connection to the next caller before it dials", work.low, work.high), float64(work.mid), "calls")
	f.opening(redial{Caller: worst.Caller, fresh: worst.fresh})
	if clients := n.Info("connected_clients"); len(clients) > 1 && clients[len(clients)-1].Value > clients[0].Value {
		f.support(recording.SourceServer, fmt.Sprintf("connected_clients rose from %.0f to %.0f", clients[0].Value, clients[len(clients)-1].Value), clients[len(clients)-1].Value, "clients")
	}
	f.doubt(recording.SourceTap, "a process that makes itself another client object now and then, each with a pool of its own, looks the same: then those objects are what is not closed", 0, "")
	f.remote(worst.Caller)
	f.Fix = n.leakFix()
	f.See = leakPages
	return f
}

var leakPages = []string{"https://commons.apache.org/proper/commons-pool/api-2.12.0/org/apache/commons/pool2/impl/AbandonedConfig.html", "https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool"}

// lastClients are the lines of the newest CLIENT LIST, without slowpath's own.
func (n *Node) lastClients() (out []Client) {
	s, ok := n.Rec.SnapshotOf(recording.SourceServer, n.Address, "clients")
	if !ok {
		return nil
	}
	for _, c := range parseClients(s.Body) {
		if !c.Self {
			out = append(out, c)
		}
	}
	return out
}

// Bounds of what CLIENT LIST tells, in whole seconds.
const (
	restSeconds = 2   // unused for so long and longer
	mostUnused  = 0.5 // of the connections
	freshUse    = 1   // seconds between a connection's begin and its last use
)

// unused counts the connections that were used when they were new, and not since.
func unused(clients []Client) (count int) {
	for _, c := range clients {
		if c.Idle >= restSeconds && c.Age-c.Idle <= freshUse && c.Flags == "N" {
			count++
		}
	}
	return count
}

// leakByCounters judges by the server's own figures: connections that come one after the other and stay, unused.
func (n *Node) leakByCounters() *Finding {
	connected, received := n.Info("connected_clients"), n.Info("total_connections_received")
	if len(connected) < 5 || len(received) < 2 {
		return nil
	}
	rises := 0
	for _, s := range connected.Steps() {
		if s.Delta >= 1 {
			rises++
		}
	}
	own := n.ownCalls(received[0].TimeNs, received[len(received)-1].TimeNs)
	grown := connected[len(connected)-1].Value - connected[0].Value
	came := received.Growth() - own.fresh
	clients := n.lastClients()
	idle := unused(clients)
	if grown < 2*leakLeast || 2*rises < len(connected)-1 || grown < came/2 || float64(idle) < mostUnused*float64(len(clients)) || idle < leakLeast {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: mostUnused, Confidence: 0.6}
	f.support(recording.SourceServer, fmt.Sprintf("connected_clients rose from %.0f to %.0f, in %d of %d looks: connections come one after the other and stay", connected[0].Value, connected[len(connected)-1].Value, rises, len(connected)-1), grown, "clients")
	f.support(recording.SourceServer, fmt.Sprintf("%d of %d in CLIENT LIST were used in their first second and not since", idle, len(clients)), float64(idle), "clients")
	f.doubt(recording.SourceServer, "who waits for them was not seen; processes that start and connect one after the other look the same", 0, "")
	f.Fix = n.leakFix()
	f.See = leakPages
	return f
}

// leakSeen adds callers that wait in their pool for a connection while most connections lie idle: those that have them do not use them.
func leakSeen(c *Case, f *Finding) *Finding {
	w, ok := c.worstWait(inPool)
	if !ok || w.Share < poolWaitLeast {
		return f
	}
	var used int64
	if r, ok := w.App.waits(func(m stacks.Meaning) bool { return m.State == stacks.Reply || m.State == stacks.Send }); ok {
		used = r.Count
	}
	open, idle := 0, 0
	var of *Node
	for _, n := range c.Nodes {
		for _, cl := range n.lastClients() {
			if cl.Flags != "N" {
				continue
			}
			if open++; cl.Idle >= restSeconds {
				idle, of = idle+1, n
			}
		}
	}
	if idle < 2 || 2*idle < open || used > int64(open-idle) {
		return f
	}
	if f == nil {
		f = &Finding{Of: len(c.Ledger.Slow), Fix: of.leakFix(), See: leakPages}
	}
	f.Confidence, f.ExcessShare = 0.9, max(f.ExcessShare, w.Share)
	f.supportWait(w)
	f.support(recording.SourceServer, fmt.Sprintf("%d of %d connections have not been used for %d s and more: whoever holds them does nothing with them", idle, open, restSeconds), float64(idle), "connections")
	return f
}

func (n *Node) leakFix() []string {
	return append([]string{"Give every connection back, on errors too: find who takes one and returns early (look at the callers of the pool's Get, Conn or getResource)"}, n.library(map[string]string{
		"redigo":   "redigo: conn := pool.Get(); defer conn.Close(), in every function that calls Get; Stats().ActiveCount minus IdleCount is what is out",
		"go-redis": "go-redis: defer conn.Close() after client.Conn(), and pubsub.Close(); use the client itself where one connection need not be held; PoolStats() has TotalConns and IdleConns",
		"jedis":    "Jedis: try (Jedis jedis = pool.getResource()) { … }; AbandonedConfig.setRemoveAbandonedOnBorrow(true), setLogAbandoned(true) says who took it; setMaxWait so that callers do not wait for ever",
		"redis-py": "redis-py: with client.pipeline() as p, pubsub.close(), and connection_pool.release for what get_connection took",
		"lettuce":  "Lettuce with commons-pool2: try (StatefulRedisConnection c = pool.borrowObject()) { … }",
	}, "redigo", "go-redis", "jedis", "redis-py", "lettuce")...)
}
