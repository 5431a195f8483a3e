package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// poolExhaustedWait: all connections of the pool are in use all of the time, and calls wait inside of the client before
// they are sent.
var poolExhaustedWait = Cause{
	ID:    "pool-exhausted-wait",
	Title: "The client's connection pool is too small: calls wait in the client for a connection",
	Layer: "client",
	Needs: Needs{
		T0: "with --pprof: goroutines or threads that wait in the pool of their client library",
		T2: "every connection of a process has a call in flight nearly all of the time, and its next one at once",
	},
	// Whatever makes calls long keeps connections in use.
	AfterClass: []Class{ServerStall},
	After: []string{
		"failover-window", "stale-topology-silent-master", "packet-loss-rto", "client-cfs-throttled",
		"client-cpu-saturated", "client-eventloop-blocked", "client-gc-pause", "blocking-cmd-on-shared-conn",
		"pool-test-on-borrow", "cmdinfo-once-lock", "pool-leak",
	},
	Explain: explainPoolWait,
	Whole:   poolWaitSeen,
}

// Bounds of a pool that is waited for.
const (
	poolConns = 2   // a single connection that is always in use is a program that makes one call after the other
	waitLong  = 1.0 // times the call itself: from then on callers lose more in the pool than at the server
	overlaps  = 1.3 // calls in flight on a connection that has any: a pool gives it to one caller at a time
)

// waits is how many times a call's own time a caller waits for a connection, by Erlang's formula: calls that come at
// random to as many connections as there are, each in use for the same part of the time.
func waits(u facts.PoolUse) float64 {
	busy := min(u.BusyShare, 0.99) // a queue that grows for ever has no mean
	load := busy * float64(len(u.Used))
	b := 1.0
	for k := 1; k <= len(u.Used); k++ {
		b = load * b / (float64(k) + load*b)
	}
	c := b / (1 - busy*(1-b))
	return c / (float64(len(u.Used)) * (1 - busy))
}

// hadMore reports whether more connections than there are now were given calls side by side in the watch: the pool puts
// them away, and may have more than these.
func hadMore(u facts.PoolUse) bool {
	used := facts.Caller{Conns: append(u.Caller.ConnsWhere((*facts.Conn).ClosedIdle), u.Used...)}
	return used.MaxConcurrent() > len(u.Used)
}

func explainPoolWait(n *facts.Node) *Finding {
	callers := n.Callers()
	if overlap(n, callers) > overlaps {
		return nil
	}
	if d, ok := n.Demand(); ok && d.Total() >= facts.SaturatedDemand {
		return nil // with more connections calls would wait at the server instead
	}
	var worst facts.PoolUse
	var waiting, all float64 // seconds of waiting per second, and of waiting and calling
	var found []*facts.Caller
	for _, c := range callers {
		u, ok := n.PoolUseOf(c)
		if !ok {
			continue
		}
		each := float64(u.CallNs) / 1e9
		all += u.CallsPerSecond * each
		if len(u.Used) < poolConns || hadMore(u) || waits(u) < waitLong || facts.ClientTools[c.Comm] ||
			slowShare(n, c) >= minSlowShare {
			continue
		}
		waiting += u.CallsPerSecond * each * waits(u)
		found = append(found, c)
		if worst.Caller == nil ||
			u.CallsPerSecond*each*waits(u) > worst.CallsPerSecond*float64(worst.CallNs)/1e9*waits(worst) {
			worst = u
		}
	}
	if worst.Caller == nil {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.8, ExcessShare: waiting / (waiting + all)}
	f.support(recording.SourceTap, fmt.Sprintf("%s has %d connections, and had a call in flight on them %.1f %% of "+
		"the time, on the least used %.1f %%", worst.Name, len(worst.Used), worst.BusyShare*100,
		worst.MinBusyShare*100),
		worst.BusyShare, "of the time")
	f.support(recording.SourceTap, fmt.Sprintf("after a reply the next call was sent on the same connection within "+
		"%s on average, and a call takes %s: the next one was there already", facts.Dur(worst.GapNs),
		facts.Dur(worst.CallNs)),
		float64(worst.GapNs), "ns")
	f.support(recording.SourceTap, fmt.Sprintf("at %.4g calls per second that come at random, such a pool makes them "+
		"wait about %s before they are sent (Erlang C)", worst.CallsPerSecond,
		facts.Dur(int64(float64(worst.CallNs)*waits(worst)))),
		float64(worst.CallNs)*waits(worst), "ns")
	if fresh := len(worst.Opened()); fresh == 0 {
		f.support(recording.SourceTap, fmt.Sprintf("it opened no other connection in %.0f s: %d are all it may have",
			n.Seconds(), len(worst.Used)), float64(len(worst.Used)), "connections")
	} else {
		f.Confidence -= 0.15
		f.doubt(recording.SourceTap, fmt.Sprintf("it opened %d connections during the watch: its pool may have room",
			fresh), float64(fresh), "connections")
	}
	if len(found) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(found), facts.CallerNames(found)),
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

// overlap is how many calls are in flight on a connection that has any: more than one where calls are pipelined or
// share it.
func overlap(n *facts.Node, callers []*facts.Caller) float64 {
	var ns int64
	for _, h := range n.Rec.Histograms {
		if h.Source == recording.SourceTap && h.Node == n.Address && len(h.Op) > 7 && h.Op[:7] == recording.Client+" " {
			_, sum := facts.HistogramSum(h.HDR)
			ns += sum
		}
	}
	var flight int64
	for _, c := range callers {
		flight += c.InFlightNs()
	}
	return float64(ns) / float64(max(flight, 1))
}

// slowShare is the part of a caller's time in flight that its slow calls took more than they usually do: what makes
// those slow keeps the connections in use, and there is no need for more of them.
func slowShare(n *facts.Node, c *facts.Caller) float64 {
	var ns int64
	for _, a := range n.Ledger.Slow {
		if c.PID != 0 && facts.PIDOf(a.Call.Client) == c.PID {
			ns += a.ExcessNs
		}
	}
	return float64(ns) / float64(max(c.InFlightNs(), 1))
}

func poolWaitFix(n *facts.Node, u facts.PoolUse) []string {
	size := int(u.CallsPerSecond*float64(u.CallNs)/1e9*2) + 2
	fix := []string{fmt.Sprintf("Give the pool more than %d connections: %.4g calls per second of %s keep %.1f in "+
		"use, and twice that leaves room for bursts: %d", len(u.Used), u.CallsPerSecond, facts.Dur(u.CallNs),
		u.CallsPerSecond*float64(u.CallNs)/1e9, max(size, 2*len(u.Used)))}
	fix = append(fix, remedy.For(n, remedy.LargerPool, remedy.Values{"connections": max(size, 2*len(u.Used))})...)
	return append(fix, "Hold connections for less: pipelines and MGET in place of calls one by one; no blocking "+
		"commands (BLPOP, XREAD BLOCK) from the same pool")
}

// poolWaitSeen adds the goroutines or threads that wait for a connection. They are the fact itself, and need no other.
func poolWaitSeen(c *facts.Case, f *Finding) *Finding {
	w, ok := c.WorstWait(facts.IsPoolWait)
	if !ok || w.Share < minPoolWaitShare {
		if f != nil && len(c.Applications) > 0 && c.CallersAreAmong(c.Applications) {
			return nil // all who call were looked at, and none of them waits
		}
		return f
	}
	if f == nil {
		f = &Finding{
			Of: len(c.Ledger.Slow), Fix: poolSeenFix(w),
			See: []string{"https://redis.io/docs/latest/develop/clients/pools-and-muxing/"},
		}
	}
	rest := f.Evidence
	f.Evidence, f.Against = nil, nil // what spoke against it was that waiting is not seen from outside
	f.Confidence, f.ExcessShare = 0.95, max(f.ExcessShare, w.Share)
	f.supportWait(w)
	if n, ok := w.App.Waits(func(m stacks.Meaning) bool {
		return m.State == stacks.Reply ||
			m.State == stacks.Send
	}); ok {
		f.support(recording.SourceProfile, fmt.Sprintf("%s: %d meanwhile send, or wait for a reply: so many "+
			"connections are in use", w.App.DisplayName(), n.Count), float64(n.Count), w.App.ThreadNoun())
	}
	f.Evidence = append(f.Evidence, rest...)
	return f
}

// poolSeenFix is what can be done where goroutines or threads were seen that wait for a connection.
func poolSeenFix(w facts.ThreadWait) []string {
	fix := []string{fmt.Sprintf("Give the pool room for those who wait: %d are in calls at a time", w.Calls)}
	if line, ok := remedy.Of(remedy.PoolSizeOption, strings.ToLower(w.Meaning.Library)); ok {
		fix = append(fix, line)
	}
	return append(fix, "Hold connections for less: pipelines and MGET in place of calls one by one; no blocking "+
		"commands (BLPOP, XREAD BLOCK) from the same pool")
}
