package cause

import (
	"fmt"

	"slowpath/internal/recording"
)

// poolExhaustedWait: all connections of the pool are in use all of the time, and calls wait inside of the client before
// they are sent. Catalogue B1.
var poolExhaustedWait = Cause{
	ID:    "pool-exhausted-wait",
	Title: "The client's connection pool is too small: calls wait in the client for a connection",
	Layer: "client",
	Needs: Needs{
		T0: "with --pprof: goroutines or threads that wait in the pool of their client library",
		T2: "every connection of a process has a call in flight nearly all of the time, and its next one at once",
	},
	// Whatever makes calls long keeps connections in use.
	After: []string{
		"server-cfs-throttled", "server-cpu-contention", "process-frozen", "failover-window",
		"stale-topology-silent-master", "hot-shard-or-hot-key", "main-thread-saturated", "slow-command",
		"lua-or-multi-long", "big-key-io",
		"client-pause-or-write-block", "packet-loss-rto", "client-cfs-throttled", "client-cpu-saturated",
		"client-eventloop-blocked", "client-gc-pause",
		"blocking-cmd-on-shared-conn", "pool-test-on-borrow", "cmdinfo-once-lock",
		"pool-leak",
	},
	Explain: explainPoolWait,
	Whole:   poolWaitSeen,
}

// Bounds of a pool that is waited for.
const (
	poolConns  = 2   // a single connection that is always in use is a program that makes one call after the other
	waitLong   = 1.0 // times the call itself: from then on callers lose more in the pool than at the server
	mostlySlow = 0.5
	overlaps   = 1.3 // calls in flight on a connection that has any: a pool gives it to one caller at a time
)

// poolUse is how a caller uses its connections.
type poolUse struct {
	*Caller
	used   []*Conn
	busy   float64 // of the time, with a call in flight: all connections together
	least  float64 // that of the least used
	gapNs  int64   // from a reply to the next send, on average
	callNs int64
	calls  float64 // per second
}

// waits is how many times a call's own time a caller waits for a connection, by Erlang's formula: calls that come at
// random to as many connections as there are, each in use for the same part of the time.
func (u poolUse) waits() float64 {
	busy := min(u.busy, 0.99) // a queue that grows for ever has no mean
	load := busy * float64(len(u.used))
	b := 1.0
	for k := 1; k <= len(u.used); k++ {
		b = load * b / (float64(k) + load*b)
	}
	c := b / (1 - busy*(1-b))
	return c / (float64(len(u.used)) * (1 - busy))
}

// hadMore reports whether more connections than there are now were given calls side by side in the watch: the pool puts
// them away, and may have more than these.
func (u poolUse) hadMore() bool {
	used := Caller{Conns: append(u.Caller.conns((*Conn).putAway), u.used...)}
	return used.atOnce() > len(u.used)
}

func explainPoolWait(n *Node) *Finding {
	callers := n.callers()
	if n.overlap(callers) > overlaps {
		return nil
	}
	if d, ok := n.demand(); ok && d.Wish() >= saturatedWish {
		return nil // with more connections calls would wait at the server instead
	}
	var worst poolUse
	var waiting, all float64 // seconds of waiting per second, and of waiting and calling
	var found []*Caller
	for _, c := range callers {
		u, ok := n.poolUseOf(c)
		if !ok {
			continue
		}
		each := float64(u.callNs) / 1e9
		all += u.calls * each
		if len(u.used) < poolConns || u.hadMore() || u.waits() < waitLong || clientTools[c.Comm] ||
			n.slowShare(c) >= mostlySlow {
			continue
		}
		waiting += u.calls * each * u.waits()
		found = append(found, c)
		if worst.Caller == nil || u.calls*each*u.waits() > worst.calls*float64(worst.callNs)/1e9*worst.waits() {
			worst = u
		}
	}
	if worst.Caller == nil {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.8, ExcessShare: waiting / (waiting + all)}
	f.support(recording.SourceTap, fmt.Sprintf("%s has %d connections, and had a call in flight on them %.1f %% of "+
		"the time, on the least used %.1f %%", worst.Name, len(worst.used), worst.busy*100, worst.least*100),
		worst.busy, "of the time")
	f.support(recording.SourceTap, fmt.Sprintf("after a reply the next call was sent on the same connection within "+
		"%s on average, and a call takes %s: the next one was there already", dur(worst.gapNs), dur(worst.callNs)),
		float64(worst.gapNs), "ns")
	f.support(recording.SourceTap, fmt.Sprintf("at %.4g calls per second that come at random, such a pool makes them "+
		"wait about %s before they are sent (Erlang C)", worst.calls, dur(int64(float64(worst.callNs)*worst.waits()))),
		float64(worst.callNs)*worst.waits(), "ns")
	if fresh := len(worst.opened()); fresh == 0 {
		f.support(recording.SourceTap, fmt.Sprintf("it opened no other connection in %.0f s: %d are all it may have",
			n.Seconds(), len(worst.used)), float64(len(worst.used)), "connections")
	} else {
		f.Confidence -= 0.15
		f.doubt(recording.SourceTap, fmt.Sprintf("it opened %d connections during the watch: its pool may have room",
			fresh), float64(fresh), "connections")
	}
	if len(found) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(found), callerNames(found)),
			float64(len(found)), "processes")
	}
	f.doubt(recording.SourceTap, "as many workers as connections that each make one call after the other look the "+
		"same: then nobody waits. The pool's own figures tell: go-redis PoolStats().WaitCount, redigo "+
		"Stats().WaitCount, Jedis getNumWaiters()", 0, "")
	f.Fix = poolWaitFix(n, worst)
	f.See = []string{
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#PoolStats",
	}
	return f
}

// poolUseOf sums up the connections of a caller that were used until the end; ok is false where too little was seen.
func (n *Node) poolUseOf(c *Caller) (u poolUse, ok bool) {
	u = poolUse{Caller: c, least: 1}
	var flight, gaps, calls int64
	var seconds, longest float64
	for _, k := range c.Conns {
		if len(k.use) < 2 || k.CloseNs > 0 {
			continue
		}
		a, b := k.use[0], k.use[len(k.use)-1]
		in, s := b.inFlightNs-a.inFlightNs, float64(b.at-a.at)/1e9
		if b.calls == a.calls || s <= 0 {
			continue
		}
		u.used = append(u.used, k)
		u.least = min(u.least, float64(in)/1e9/s)
		flight, gaps, calls, seconds, longest = flight+in, gaps+b.idleNs-a.idleNs, calls+b.calls-a.calls, seconds+s,
			max(longest, s)
	}
	if len(u.used) == 0 || calls == 0 {
		return u, false
	}
	u.busy, u.gapNs, u.callNs, u.calls = float64(flight)/1e9/seconds, gaps/calls, flight/calls, float64(calls)/longest
	return u, true
}

// overlap is how many calls are in flight on a connection that has any: more than one where calls are pipelined or
// share it.
func (n *Node) overlap(callers []*Caller) float64 {
	var ns int64
	for _, h := range n.Rec.Histograms {
		if h.Source == recording.SourceTap && h.Node == n.Address && len(h.Op) > 7 && h.Op[:7] == recording.Client+" " {
			_, sum := histogramSum(h.HDR)
			ns += sum
		}
	}
	var flight int64
	for _, c := range callers {
		flight += c.inFlightNs()
	}
	return float64(ns) / float64(max(flight, 1))
}

// slowShare is the part of a caller's time in flight that its slow calls took more than they usually do: what makes
// those slow keeps the connections in use, and there is no need for more of them.
func (n *Node) slowShare(c *Caller) float64 {
	var ns int64
	for _, a := range n.Ledger.Slow {
		if c.PID != 0 && pidOf(a.Call.Client) == c.PID {
			ns += a.ExcessNs
		}
	}
	return float64(ns) / float64(max(c.inFlightNs(), 1))
}

func poolWaitFix(n *Node, u poolUse) []string {
	size := int(u.calls*float64(u.callNs)/1e9*2) + 2
	fix := []string{fmt.Sprintf("Give the pool more than %d connections: %.4g calls per second of %s keep %.1f in "+
		"use, and twice that leaves room for bursts: %d", len(u.used), u.calls, dur(u.callNs),
		u.calls*float64(u.callNs)/1e9, max(size, 2*len(u.used)))}
	fix = append(fix, n.library(map[string]string{
		"go-redis": fmt.Sprintf("go-redis: PoolSize: %d (10 per CPU by default), MinIdleConns",
			max(size, 2*len(u.used))),
		"redigo": fmt.Sprintf("redigo: MaxActive and MaxIdle: %d", max(size, 2*len(u.used))),
		"jedis": fmt.Sprintf("Jedis: setMaxTotal(%d), setMaxIdle(%d) (8 by default), setMaxWait",
			max(size, 2*len(u.used)), max(size, 2*len(u.used))),
		"redis-py": fmt.Sprintf("redis-py: BlockingConnectionPool(max_connections=%d)", max(size, 2*len(u.used))),
	}, "go-redis", "redigo", "jedis", "redis-py")...)
	return append(fix, "Hold connections for less: pipelines and MGET in place of calls one by one; no blocking "+
		"commands (BLPOP, XREAD BLOCK) from the same pool")
}
