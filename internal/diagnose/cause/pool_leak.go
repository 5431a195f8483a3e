package cause

import (
	"cmp"
	"fmt"
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// poolLeak: the application takes connections out of the pool and does not give them back. The pool dials others, until
// it may not any more. Catalogue B7.
var poolLeak = Cause{
	ID: "pool-leak",
	Title: "The application does not give connections back: they lie idle outside of the pool, and it dials others " +
		"until it is empty",
	Layer: "client",
	Needs: Needs{
		T0: "with --pprof: callers that wait in their pool while connections lie idle by CLIENT LIST. Without it " +
			"nothing: connections that the path forgot look the same to the server",
		T2: "new connections right before calls while others of the same process lie idle and are never used again: " +
			"they stay open, or a garbage collector closes them together after different times",
	},
	Explain: explainLeak,
	Whole:   leakSeen,
}

// Bounds of a leak. One connection that is kept aside is a subscriber or a lock's.
const (
	leakLeast = minRedials
	// since its last call: longer than callers hold a connection between two calls of one piece of work
	leakRestNs  = int64(100e6)
	leakKnownNs = int64(2e9) // before the end of the watch: what is used after the last look at it only seems unused
	leakOpening = 0.5        // of the openings happened beside an idle connection
)

// leak is what a caller has lost of its connections.
type leak struct {
	*Caller
	lost []*Conn // not used again, though the pool had to open others meanwhile
	// those of its runtime's garbage collector, which closes what is lost; none where there is no such thing
	swept []sweep
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

// resting are the connections that are still open at the end, each with the time in which it lay idle and another need
// not have been opened.
func (c *Caller) resting(endNs int64) map[*Conn]span {
	out := map[*Conn]span{}
	for _, k := range c.Conns {
		used := k.work() > 0 || k.Greeting != nil
		if used && k.CloseNs == 0 && k.CutNs == 0 && (k.OpenNs > 0 || len(k.use) > 0) {
			out[k] = span{k.lastUse() + leakRestNs, endNs - leakKnownNs}
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
		if l := n.leakOf(c, driven); len(l.lost) >= leakLeast {
			out = append(out, l)
		}
	}
	return out
}

// leakOf is what one caller lost; nothing where most of its openings were not beside lost connections.
func (n *Node) leakOf(c *Caller, driven map[*Conn]bool) leak {
	l := leak{Caller: c}
	opened := c.opened()
	for _, k := range opened {
		if !k.ahead(c.callNs()) && k.Greeting != nil && !driven[k] {
			l.fresh = append(l.fresh, k)
		}
	}
	dials := dialsOf(l.fresh)
	rests := c.resting(n.EndNs)
	l.swept = c.collected(dials)
	for _, s := range l.swept {
		for _, k := range s.conns {
			rests[k] = k.rest()
		}
	}
	var idle spans
	for _, k := range c.Conns {
		if r, ok := rests[k]; ok && anyWithin(dials, r) {
			l.lost, idle = append(l.lost, k), append(idle, [2]int64{r.from, r.to})
		}
	}
	idle = merge(idle)
	beside := 0
	for _, at := range dials {
		if idle.in(at, at+1) > 0 {
			beside++
		}
	}
	if beside < leakLeast || float64(beside) < leakOpening*float64(len(opened)) {
		return leak{}
	}
	return l
}

func explainLeak(n *Node) *Finding {
	callers := n.callers()
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
	f.support(recording.SourceTap, fmt.Sprintf("%s opened %d connections right before calls while others of its own "+
		"lay idle: %d of those were never used again%s", worst.Name, len(worst.fresh), len(worst.lost), worst.left()),
		float64(len(worst.lost)), "connections")
	f.supportSweeps(worst)
	work := spreadOf(worst.lost, (*Conn).work)
	f.support(recording.SourceTap, fmt.Sprintf("they had had %d to %d calls; a pool gives an idle connection to the "+
		"next caller before it dials", work.low, work.high), float64(work.mid), "calls")
	f.opening(redial{Caller: worst.Caller, fresh: worst.fresh})
	if clients := n.Info("connected_clients"); len(clients) > 1 && clients[len(clients)-1].Value > clients[0].Value {
		f.support(recording.SourceServer, fmt.Sprintf("connected_clients rose from %.0f to %.0f", clients[0].Value,
			clients[len(clients)-1].Value), clients[len(clients)-1].Value, "clients")
	}
	f.doubt(recording.SourceTap, "a process that makes itself another client object now and then, each with a pool "+
		"of its own, looks the same: then those objects are what is not closed", 0, "")
	f.remote(worst.Caller)
	f.Fix = n.leakFix()
	f.See = leakPages
	return f
}

// left says what became of lost connections that nobody closes.
func (l leak) left() string {
	if len(l.swept) == 0 {
		return ", and never closed"
	}
	return ""
}

// supportSweeps tells who closed what was lost.
func (f *Finding) supportSweeps(l leak) {
	if len(l.swept) == 0 {
		return
	}
	most := slices.MaxFunc(l.swept, func(a, b sweep) int { return cmp.Compare(len(a.conns), len(b.conns)) })
	var all []*Conn
	for _, s := range l.swept {
		all = append(all, s.conns...)
	}
	idle := spreadOf(all, func(k *Conn) int64 { return k.IdleNs })
	f.support(recording.SourceTap, fmt.Sprintf("the process closed %d such ones together, up to %d within %s, after "+
		"%s to %s without a call: no limit and no pool does that, but a garbage collector that finds them lost",
		len(all), len(most.conns), dur(most.to-most.from), dur(idle.low), dur(idle.high)), float64(len(all)),
		"connections")
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

// restSeconds: a connection that was not used for so long, by CLIENT LIST, lies idle.
const restSeconds = 2

// leakSeen adds callers that wait in their pool for a connection while most connections lie idle: those that have them
// do not use them.
func leakSeen(c *Case, f *Finding) *Finding {
	w, ok := c.worstWait(inPool)
	if !ok || w.Share < poolWaitLeast {
		return f
	}
	var used int64
	if r, ok := w.App.waits(func(m stacks.Meaning) bool {
		return m.State == stacks.Reply ||
			m.State == stacks.Send
	}); ok {
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
	f.support(recording.SourceServer, fmt.Sprintf("%d of %d connections have not been used for %d s and more: "+
		"whoever holds them does nothing with them", idle, open, restSeconds), float64(idle), "connections")
	return f
}

func (n *Node) leakFix() []string {
	return append([]string{"Give every connection back, on errors too: find who takes one and returns early (look at " +
		"the callers of the pool's Get, Conn or getResource)"}, n.library(map[string]string{
		"redigo": "redigo: conn := pool.Get(); defer conn.Close(), in every function that calls Get; " +
			"Stats().ActiveCount minus IdleCount is what is out",
		"go-redis": "go-redis: defer conn.Close() after client.Conn(), and pubsub.Close(); use the client itself " +
			"where one connection need not be held; PoolStats() has TotalConns and IdleConns",
		"jedis": "Jedis: try (Jedis jedis = pool.getResource()) { … }; " +
			"AbandonedConfig.setRemoveAbandonedOnBorrow(true), setLogAbandoned(true) says who took it; setMaxWait so " +
			"that callers do not wait for ever",
		"redis-py": "redis-py: with client.pipeline() as p, pubsub.close(), and connection_pool.release for what " +
			"get_connection took",
		"lettuce": "Lettuce with commons-pool2: try (StatefulRedisConnection c = pool.borrowObject()) { … }",
	}, "redigo", "go-redis", "jedis", "redis-py", "lettuce")...)
}
