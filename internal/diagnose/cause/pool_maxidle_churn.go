package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// poolMaxIdleChurn: the pool keeps fewer idle connections than are in use at a time: it closes the others when they are
// returned, and dials again for the next burst.
var poolMaxIdleChurn = Cause{
	ID:    "pool-maxidle-churn",
	Title: "The client's pool keeps too few idle connections: it closes returned ones, and dials again",
	Layer: "client",
	Needs: Needs{
		T0: "total_connections_received rises by more than 1 % of the commands (a hint)",
		T2: "connections that the client closes soon after a call while others of the same " +
			"process stay open, and new ones right before calls",
	},
	After:   []string{"replica-loading-or-readonly-routing", "failover-window"},
	Explain: explainMaxIdle,
}

func explainMaxIdle(n *facts.Node) *Finding {
	callers := n.Callers()
	found, all, cost := facts.MostOf(slices.DeleteFunc(n.Pooled(callers),
		func(r facts.Redial) bool { return !r.Overflows() }))
	if len(found) == 0 {
		return nil
	}
	f := findingOfLosses(n.LostTime(callers), n, cost, 0.88)
	if c := n.Churn(); c.Matters() && all.Reused() &&
		float64(len(all.Ended)) >= facts.MostlySlow*c.PerSecond*n.Seconds() {
		if f == nil {
			f = &Finding{Of: len(n.Ledger.Slow), Confidence: 0.88}
		}
		f.ExcessShare = max(f.ExcessShare, c.Share())
		f.support(recording.SourceProbe, float64(c.PriceNs), "ns",
			"a call on a new connection takes %s more than the %s on an open one: %.0f %% of its time",
			facts.Dur(c.PriceNs), facts.Dur(c.CallNs),
			c.Share()*100)
	}
	if f == nil {
		return nil
	}
	idle := facts.SpreadOf(all.Ended, func(k *facts.Conn) int64 { return k.IdleNs })
	work := facts.SpreadOf(all.Ended, (*facts.Conn).Work)
	f.support(recording.SourceTap, float64(len(all.Ended))/n.Seconds(), "per second",
		"%s opened %.3g connections per second and closed %.3g itself, for %.3g calls per second", all.Name,
		float64(len(all.Opened()))/n.Seconds(), float64(len(all.Ended))/n.Seconds(), float64(all.Calls())/n.Seconds())
	f.support(recording.SourceTap, float64(idle.Mid), "ns",
		"it closed them %s after their last call (p90 %s), soon and after no fixed time: not for being idle",
		facts.Dur(idle.Mid), facts.Dur(idle.High))
	if passed := facts.PassedOver(all.Ended, facts.DialsOf(all.Fresh)); len(passed) > 0 {
		f.doubt(recording.SourceTap, float64(len(passed)), "connections",
			"%d of the %d had been idle while others were dialled: those were "+
				"of another pool, or leaked by the application", len(passed), len(all.Ended))
	}
	f.support(recording.SourceTap, float64(all.AtOnce()), "connections",
		"some went to the next caller, others were closed: %d to %d calls on each, up to %s open at once", work.Low,
		work.High, counted(all.AtOnce(), "connection"))
	f.supportOpening(all)
	if len(found) > 1 {
		f.support(recording.SourceTap, float64(len(found)), "processes",
			"%d processes do so: %s", len(found), facts.CallerNames(found))
	}
	f.doubt(recording.SourceTap, 0, "",
		"jobs that open a connection each, for a varying number of calls, look much the same")
	f.doubtRemote(all.Caller)
	f.Fix = append([]string{fmt.Sprintf("Let the pool keep as many idle connections as are in use at a time: %d here",
		all.AtOnce())}, remedy.For(n, remedy.LargerIdleLimit, remedy.Values{"connections": all.AtOnce()})...)
	f.See = []string{
		"https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool",
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
	}
	return f
}
