package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// poolMaxIdleChurn: the pool keeps fewer idle connections than are in use at a time: it closes the others when they are
// given back, and dials again for the next burst.
var poolMaxIdleChurn = Cause{
	ID:    "pool-maxidle-churn",
	Title: "The client's pool keeps too few idle connections: it closes what is given back, and dials again",
	Layer: "client",
	Needs: Needs{
		T0: "total_connections_received growing by more than 1 % of the commands (a hint)",
		T2: "connections that the client closes soon after a call while others of the same process live on, and new " +
			"ones right before calls",
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
	f := findingOfLosses(n.Overhead(callers), n, sum.CostNs, 0.88)
	if c := n.Churn(); c.Matters() && most.Reused() &&
		float64(len(most.Closed)) >= minSlowShare*c.PerSecond*n.Seconds() {
		if f == nil {
			f = &Finding{Of: len(n.Ledger.Slow), Confidence: 0.88}
		}
		f.ExcessShare = max(f.ExcessShare, c.Share())
		f.support(recording.SourceProbe, fmt.Sprintf("a call takes %s more on a new connection, and %s on an open "+
			"one: that is %.0f %% of what those wait for that get a new one", facts.Dur(c.OpeningNs),
			facts.Dur(c.CallNs),
			c.Share()*100), float64(c.OpeningNs), "ns")
	}
	if f == nil {
		return nil
	}
	idle, work := facts.PercentilesOf(most.Closed, func(k *facts.Conn) int64 { return k.IdleNs }),
		facts.PercentilesOf(most.Closed,
			(*facts.Conn).AppCalls)
	f.support(recording.SourceTap, fmt.Sprintf("%s opened %.3g connections per second and closed %.3g itself, for "+
		"%.3g calls per second", most.Name, float64(len(most.Opened()))/n.Seconds(),
		float64(len(most.Closed))/n.Seconds(), float64(most.AppCalls())/n.Seconds()),
		float64(len(most.Closed))/n.Seconds(),
		"per second")
	f.support(recording.SourceTap, fmt.Sprintf("it closed them %s after their last call (9 of 10 within %s), soon "+
		"and after no fixed time: not for being idle", facts.Dur(idle.Median), facts.Dur(idle.P90)),
		float64(idle.Median),
		"ns")
	if passed := facts.IdleDuringDials(most.Closed, facts.DialTimes(most.Dialled)); len(passed) > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d of the %d had lain idle while others were dialled: those were "+
			"of another pool, or lost by the application", len(passed), len(most.Closed)), float64(len(passed)),
			"connections")
	}
	f.support(recording.SourceTap, fmt.Sprintf("some were given to the next caller, others closed: %d to %d calls on "+
		"each, up to %d connections open at once", work.P10, work.P90, most.MaxConcurrent()),
		float64(most.MaxConcurrent()),
		"connections")
	f.opening(most)
	if len(sum.Callers) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(sum.Callers),
			facts.CallerNames(sum.Callers)),
			float64(len(sum.Callers)), "processes")
	}
	f.doubt(recording.SourceTap, "jobs that open a connection each, for a number of calls that varies, look much the "+
		"same", 0, "")
	f.remote(most.Caller)
	f.Fix = append([]string{fmt.Sprintf("Let the pool keep as many idle connections as are in use at a time: %d here",
		most.MaxConcurrent())}, remedy.For(n, remedy.LargerIdleLimit,
		remedy.Values{"connections": most.MaxConcurrent()})...)
	f.See = []string{
		"https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool",
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
	}
	return f
}
