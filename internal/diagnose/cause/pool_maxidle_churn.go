package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolMaxIdleChurn: the pool keeps fewer idle connections than are in use at a time: it closes the others when they are
// returned, and dials again for the next burst.
var poolMaxIdleChurn = Cause{
	ID:      "pool-maxidle-churn",
	Class:   Redial,
	Options: []remedy.Topic{remedy.LargerIdleLimit},
	After:   []string{"replica-loading-or-readonly-routing", "failover-window"},
	Explain: explainMaxIdle,
}

func explainMaxIdle(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	sum := connection.SumRedials(slices.DeleteFunc(connection.PoolRedials(n, callers),
		func(r connection.Redial) bool { return !r.PoolOverflows() }))
	if len(sum.Callers) == 0 {
		return nil
	}
	most := sum.Largest
	f := findingOfLosses(connection.OverheadOf(n, callers), n, sum.CostNs)
	if c := connection.ChurnOf(n); c.Matters() && most.Reused() &&
		float64(len(most.Closed)) >= minSlowShare*c.PerSecond*n.Seconds() {
		if f == nil {
			f = &Finding{Of: n.Ledger.Calls()}
			f.loseByChurn(n, c)
		}
		f.support(recording.SourceProbe, float64(c.OpeningNs), "ns", "a call on a new connection takes %s more than "+
			"the %s on an open one: %.0f %% of its time", format.Brief(c.OpeningNs), format.Brief(c.CallNs),
			c.Share()*100)
	}
	if f == nil {
		return nil
	}
	idle := caller.PercentilesOf(most.Closed, func(k *caller.Conn) int64 { return k.IdleNs })
	work := caller.PercentilesOf(most.Closed, (*caller.Conn).AppCalls)
	f.support(recording.SourceTap, float64(len(most.Closed))/n.Seconds(), "per second",
		"%s opened %s connections per second and closed %s itself, for %s calls per second", most.Name,
		format.Rounded(float64(len(most.Opened()))/n.Seconds()),
		format.Rounded(float64(len(most.Closed))/n.Seconds()), format.Rounded(float64(most.AppCalls())/n.Seconds()))
	f.support(recording.SourceTap, float64(idle.Median), "ns", "it closed them %s after their last call (p90 %s), "+
		"soon and after no fixed time: not for being idle", format.Brief(idle.Median), format.Brief(idle.P90))
	if passed := most.IdleDuringDials(); len(passed) > 0 {
		f.doubt(recording.SourceTap, float64(len(passed)), "connections", "%d of the %d had been idle while others "+
			"were dialled: those were of another pool, or leaked by the application", len(passed), len(most.Closed))
	}
	f.support(recording.SourceTap, float64(most.MaxConcurrent()), "connections",
		"some went to the next caller, others were closed: %d to %d calls on each, up to %s open at once", work.P10,
		work.P90, counted(most.MaxConcurrent(), "connection"))
	f.supportOpening(most)
	f.doubt(recording.SourceTap, 0, "",
		"jobs that open a connection each, for a varying number of calls, look much the same")
	f.doubtRemote(most.Caller)
	f.blameLoads(n, sum.Callers...)
	f.FixSteps = offered(n, remedy.LargerIdleLimit, remedy.Values{"connections": most.MaxConcurrent()},
		fmt.Sprintf("The pool has to keep as many as were open at a time: %d", most.MaxConcurrent()), most.Caller)
	return f
}
