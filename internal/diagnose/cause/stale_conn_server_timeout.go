package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// staleConnServerTimeout: the server, or what stands before it, closes connections that were idle for a while, and
// their client finds out when it wants to use them: an error or a silent second try, and a new connection. Catalogue
// B10.
var staleConnServerTimeout = Cause{
	ID: "stale-conn-server-timeout",
	Title: "The server's end closes idle connections that the client's pool keeps: the next calls meet a dead one " +
		"and pay for another",
	Layer: "client",
	Needs: Needs{
		T0: "timeout above 0, and connections that come and go at a low rate (a hint)",
		T2: "connections that the server's end closes after the same time without a call, and new ones of the same " +
			"callers right before calls",
	},
	Explain: explainStale,
}

func explainStale(n *facts.Node) *Finding {
	callers := n.Callers()
	if len(callers) == 0 {
		return staleByCounters(n)
	}
	sum := facts.SumRedials(n.StaleRedials(callers))
	if len(sum.Callers) == 0 {
		return nil
	}
	most := sum.Largest
	f := findingOfLosses(n.Overhead(callers), n, sum.CostNs, 0.88)
	if f == nil {
		return nil
	}
	idle := facts.PercentilesOf(most.Closed, func(k *facts.Conn) int64 { return k.ServerClosedIdleNs })
	f.support(recording.SourceTap, fmt.Sprintf("the server's end closed %d connections of %s between calls, each "+
		"after %s to %s without one", len(most.Closed), most.Name, facts.Dur(idle.P10), facts.Dur(idle.P90)),
		float64(idle.Median), "ns")
	limit := n.IdleLimitNs()
	switch _, told := n.Config("timeout"); {
	case limit > 0:
		f.Confidence = 0.95
		f.support(recording.SourceServer, fmt.Sprintf("timeout is %d s: the server closes what is idle for longer, "+
			"and looks once a second or less often", limit/1e9), float64(limit), "ns")
	case told:
		f.support(recording.SourceServer, "timeout is 0: not the server closes them, but a proxy, a balancer or a "+
			"firewall before it", 0, "s")
	default:
		f.doubt(recording.SourceServer, "the server does not tell its parameter timeout: it may be the server, or "+
			"what stands before it", 0, "")
	}
	if late := lateNotice(most.Closed); late.Median > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("the client's socket stayed for another %s (median), until the "+
			"next call met it", facts.Dur(late.Median)), float64(late.Median), "ns")
	}
	f.opening(most)
	f.support(recording.SourceTap, fmt.Sprintf("%d of %d connections that it opened had their first call right "+
		"behind the handshake: somebody waited for them", len(most.Dialled), len(most.Opened())),
		float64(len(most.Dialled)),
		"connections")
	if len(sum.Callers) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes meet that: %s", len(sum.Callers),
			facts.CallerNames(sum.Callers)),
			float64(len(sum.Callers)), "processes")
	}
	f.remote(most.Caller)
	f.Fix = staleFix(n, limit, idle.P10)
	f.See = []string{
		"https://redis.io/docs/latest/develop/reference/clients/#client-timeouts",
		"https://github.com/redis/node-redis/issues/247",
	}
	return f
}

// lateNotice is how long after the other end had closed them the clients' sockets were closed.
func lateNotice(ended []*facts.Conn) facts.Percentiles {
	var known []*facts.Conn
	for _, k := range ended {
		if k.CloseNs > k.ServerClosedNs {
			known = append(known, k)
		}
	}
	return facts.PercentilesOf(known, func(k *facts.Conn) int64 { return k.CloseNs - k.ServerClosedNs })
}

// Bounds of what the counters alone can say: few connections, of few commands, in a watch that is much longer than the
// limit.
const (
	staleWatches = 4  // times the limit
	staleCalls   = 50 // commands on each
	staleShare   = 0.3
)

func staleByCounters(n *facts.Node) *Finding {
	limit := n.IdleLimitNs()
	c := n.Churn()
	if limit == 0 || n.Seconds()*1e9 < staleWatches*float64(limit) || c.PerSecond*n.Seconds() < facts.MinHerd/2 ||
		c.PerSecond >= facts.MinChurn || c.CommandsPerConn > staleCalls || c.Share() < staleShare {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: c.Share(), Confidence: 0.5}
	f.support(recording.SourceServer, fmt.Sprintf("timeout is %d s, and %.2g connections per second come and go, "+
		"with %.3g commands on each", limit/1e9, c.PerSecond, c.CommandsPerConn), c.PerSecond, "per second")
	f.doubt(recording.SourceServer, "who closed them was not seen: clients that make a connection for each job look "+
		"the same", 0, "")
	f.Fix = staleFix(n, limit, limit)
	f.See = []string{"https://redis.io/docs/latest/develop/reference/clients/#client-timeouts"}
	return f
}

func staleFix(n *facts.Node, limit, idleNs int64) []string {
	var fix []string
	half := max(idleNs/2e9, 1)
	if limit > 0 {
		fix = append(fix, fmt.Sprintf("CONFIG SET timeout 0 (now %d): dead peers are found by tcp-keepalive all the "+
			"same", limit/1e9))
	} else {
		fix = append(fix, fmt.Sprintf("Raise the idle timeout of what stands before the server (HAProxy: timeout "+
			"client and timeout server; AWS NLB 350 s) above %s", facts.Dur(idleNs)))
	}
	return append(append(fix, fmt.Sprintf("or let the pool close first, and refill ahead: an idle limit below %s, "+
		"with some connections kept ready", facts.Dur(idleNs))), remedy.For(n, remedy.CloseFirst,
		remedy.Values{"seconds": int(half), "milliseconds": int(half * 1000)})...)
}
