package cause

import (
	"fmt"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// staleConnServerTimeout: the server, or something on the path, closes connections that were idle for a while. The
// client notices when it next uses one: an error or a silent retry, and a new connection.
var staleConnServerTimeout = Cause{
	ID:      "stale-conn-server-timeout",
	Class:   Redial,
	Options: []remedy.Topic{remedy.CloseFirst},
	Changes: []string{"timeout"},
	Explain: explainStale,
}

func explainStale(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	if len(callers) == 0 {
		return staleByCounters(n)
	}
	sum := connection.SumRedials(connection.StaleRedials(n, callers))
	if len(sum.Callers) == 0 {
		return nil
	}
	most := sum.Largest
	f := findingOfLosses(connection.OverheadOf(n, callers), n, sum.CostNs)
	if f == nil {
		return nil
	}
	f.Samples = sum.Count
	idle := caller.PercentilesOf(most.Closed, func(k *caller.Conn) int64 { return k.ServerClosedIdleNs })
	f.support(recording.SourceTap, float64(idle.Median), "ns",
		"the server's end closed %s of %s, each after %s to %s without a call",
		counted(len(most.Closed), "idle connection"), most.Name, format.Brief(idle.P10), format.Brief(idle.P90))
	limit := n.IdleLimitNs()
	switch _, known := n.Config("timeout"); {
	case limit > 0:
		f.support(recording.SourceServer, float64(limit), "ns", "timeout is %d s: the server closes connections that "+
			"are idle for longer, and checks at most once a second", limit/1e9)
	case known:
		f.support(recording.SourceServer, 0, "s",
			"timeout is 0: not the server closes them, but a proxy, a balancer or a firewall on the path")
	default:
		f.doubt(recording.SourceServer, 0, "",
			"the server does not report its parameter timeout: it may be the server, or something on the path")
	}
	f.supportDialled(most)
	f.doubtRemote(most.Caller)
	f.FixSteps = staleFix(n, limit, idle.P10, sum.Callers...)
	return f
}

// staleByCounters judges by the counters alone, which show it where few connections, of few commands, come in a watch
// that is much longer than the limit.
func staleByCounters(n *facts.Node) *Finding {
	limit := n.IdleLimitNs()
	c := connection.ChurnOf(n)
	if limit == 0 || n.Seconds()*1e9 < degree.Several*float64(limit) ||
		c.PerSecond*n.Seconds() < degree.Many || c.PerSecond >= degree.Many || c.Share() < degree.Most {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.loseByChurn(n, c)
	f.weaken(1)
	f.support(recording.SourceServer, c.PerSecond, "per second", "timeout is %d s, and %s connections per second come "+
		"and go, with %s commands on each", limit/1e9, format.Rounded(c.PerSecond), format.Rounded(c.CommandsPerConn))
	f.doubt(recording.SourceServer, 0, "",
		"what closed them was not seen: clients that open a connection for each job look the same")
	f.FixSteps = staleFix(n, limit, limit)
	return f
}

func staleFix(n *facts.Node, limit, idleNs int64, of ...*caller.Caller) []remedy.Step {
	first := change("longer-idle-timeout", "Raise the idle timeout of the proxy or balancer on the path (HAProxy: "+
		"timeout client and timeout server; AWS NLB 350 s) above %s", format.Brief(idleNs))
	if limit > 0 {
		first = remedy.ConfigSet(n, "no-idle-timeout", "timeout", "0",
			"Let the server keep idle connections: tcp-keepalive still finds dead peers")
		idleNs = min(idleNs, limit)
	}
	half := max(idleNs/2e9, 1)
	if half*1e9 >= idleNs {
		return []remedy.Step{first} // limits of pools are in seconds, and none is shorter
	}
	closeFirst := offered(n, remedy.CloseFirst, remedy.Values{
		"seconds": int(half), "milliseconds": int(half * 1000),
	}, fmt.Sprintf("Let the pool close first, and refill ahead: an idle limit below %s, with some connections kept "+
		"ready", format.Brief(idleNs)), of...)
	closeFirst[0].Or = true
	return append([]remedy.Step{first}, closeFirst...)
}
