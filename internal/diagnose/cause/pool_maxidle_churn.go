package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolMaxIdleChurn: the pool keeps fewer idle connections than are in use at a time: it closes the others when they are
// returned, and dials again for the next burst.
var poolMaxIdleChurn = Cause{
	ID:    "pool-maxidle-churn",
	Title: "The client's pool keeps too few idle connections: it closes returned ones, and dials again",
	Layer: "client",
	Class: Redial,
	Needs: Needs{
		T0: "total_connections_received rises by more than 1 % of the commands (a hint)",
		T2: "connections that the client closes soon after a call while others of the same " +
			"process stay open, and new ones right before calls",
	},
	Mechanism: "The pool keeps fewer idle connections than are in use at a time. It closes the others when they " +
		"are returned, and dials again for the next burst.",
	RuledOut: "Connections that are closed after a fixed idle time only, or by the server's end",
	LookAlikes: []LookAlike{
		{"pool-idle-reap-redial", "there connections are closed after a fixed time without a call"},
		{"pool-leak", "there connections stay open outside the pool"},
		{"short-lived-connections", "there no connection stays open"},
	},
	Remedy:  "As many idle connections as are in use at a time (MaxIdle = MaxActive, maxIdle = maxTotal).",
	Options: []remedy.Topic{remedy.LargerIdleLimit},
	See: []string{
		"https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool",
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
	},
	After:   []string{"replica-loading-or-readonly-routing", "failover-window"},
	Explain: explainMaxIdle,
}

func explainMaxIdle(n *facts.Node) *Finding {
	callers := n.Callers()
	sum := facts.SumRedials(slices.DeleteFunc(n.PoolRedials(callers),
		func(r facts.Redial) bool { return !r.PoolOverflows() }))
	if len(sum.Callers) == 0 {
		return nil
	}
	most := sum.Largest
	f := findingOfLosses(n.Overhead(callers), n, sum.CostNs)
	if c := n.Churn(); c.Matters() && most.Reused() &&
		float64(len(most.Closed)) >= minSlowShare*c.PerSecond*n.Seconds() {
		if f == nil {
			f = &Finding{Of: n.Ledger.Calls()}
			f.loseByChurn(n, c)
		}
		f.support(recording.SourceProbe, float64(c.OpeningNs), "ns",
			"a call on a new connection takes %s more than the %s on an open one: %.0f %% of its time",
			format.Brief(c.OpeningNs), format.Brief(c.CallNs),
			c.Share()*100)
	}
	if f == nil {
		return nil
	}
	idle := facts.PercentilesOf(most.Closed, func(k *facts.Conn) int64 { return k.IdleNs })
	work := facts.PercentilesOf(most.Closed, (*facts.Conn).AppCalls)
	f.support(recording.SourceTap, float64(len(most.Closed))/n.Seconds(), "per second",
		"%s opened %s connections per second and closed %s itself, for %s calls per second", most.Name,
		format.Rounded(float64(len(most.Opened()))/n.Seconds()),
		format.Rounded(float64(len(most.Closed))/n.Seconds()), format.Rounded(float64(most.AppCalls())/n.Seconds()))
	f.support(recording.SourceTap, float64(idle.Median), "ns",
		"it closed them %s after their last call (p90 %s), soon and after no fixed time: not for being idle",
		format.Brief(idle.Median), format.Brief(idle.P90))
	if passed := most.IdleDuringDials(); len(passed) > 0 {
		f.doubt(recording.SourceTap, float64(len(passed)), "connections",
			"%d of the %d had been idle while others were dialled: those were "+
				"of another pool, or leaked by the application", len(passed), len(most.Closed))
	}
	f.support(recording.SourceTap, float64(most.MaxConcurrent()), "connections",
		"some went to the next caller, others were closed: %d to %d calls on each, up to %s open at once", work.P10,
		work.P90, counted(most.MaxConcurrent(), "connection"))
	f.supportOpening(most)
	if len(sum.Callers) > 1 {
		f.support(recording.SourceTap, float64(len(sum.Callers)), "processes",
			"%d processes do so: %s", len(sum.Callers), facts.CallerNames(sum.Callers))
	}
	f.doubt(recording.SourceTap, 0, "",
		"jobs that open a connection each, for a varying number of calls, look much the same")
	f.doubtRemote(most.Caller)
	f.blameLoads(n, sum.Callers...)
	f.FixSteps = offered(n, remedy.LargerIdleLimit, remedy.Values{"connections": most.MaxConcurrent()},
		fmt.Sprintf("The pool has to keep as many as were open at a time: %d", most.MaxConcurrent()), most.Caller)
	return f
}
