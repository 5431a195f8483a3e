package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolIdleReapRedial: the pool closes connections that were idle for a while, and the next call pays for a new one.
var poolIdleReapRedial = Cause{
	ID:      "pool-idle-reap-redial",
	Class:   Redial,
	Options: []remedy.Topic{remedy.KeepIdle},
	Explain: explainIdleReap,
}

func explainIdleReap(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	sum := connection.SumRedials(slices.DeleteFunc(connection.PoolRedials(n, callers),
		func(r connection.Redial) bool { return !r.ByIdleLimit() }))
	if len(sum.Callers) == 0 {
		return nil
	}
	most := sum.Largest
	f := findingOfLosses(connection.OverheadOf(n, callers), n, sum.CostNs)
	if f == nil {
		return nil
	}
	f.Samples = sum.Count
	idle := caller.PercentilesOf(most.Closed, func(k *caller.Conn) int64 { return k.IdleNs })
	work := caller.PercentilesOf(most.Closed, (*caller.Conn).AppCalls)
	f.support(recording.SourceTap, float64(idle.P10), "ns", "%s closed %s, each after %s to %s without a call (median "+
		"%s): an idle limit of %s", most.Name, counted(len(most.Closed), "idle connection"), format.Brief(idle.P10),
		format.Brief(idle.P90), format.Brief(idle.Median), limitText(limit(most)))
	f.supportDialled(most)
	f.support(recording.SourceTap, float64(work.Median), "calls", "each made %s; %s has up to %s open at once, and "+
		"makes %s calls per second", counted(work.Median, "call"), most.Name,
		counted(most.MaxConcurrent(), "connection"), format.Rounded(float64(most.AppCalls())/n.Seconds()))
	if spare := most.SpareShare(); spare > 0 {
		f.doubt(recording.SourceTap, spare, "of them", "during %.0f %% of the dials another connection of this "+
			"process was idle: it may have several pools", spare*100)
	}
	f.doubtRemote(most.Caller)
	f.blameLoads(n, sum.Callers...)
	f.FixSteps = keepIdleFix(n, idle.Median, sum.Callers...)
	return f
}

// keepIdleFix keeps connections for longer than the pauses are.
func keepIdleFix(n *facts.Node, pauseNs int64, of ...*caller.Caller) []remedy.Step {
	steps := offered(n, remedy.KeepIdle, nil,
		fmt.Sprintf("The pool has to outlast pauses of %s and more", format.Brief(pauseNs)), of...)
	for i := range steps {
		steps[i].Risk = "connections that are idle for longer than the server's timeout, or than a load balancer on " +
			"the path allows (350 s at an AWS NLB), are closed by these"
	}
	return steps
}

// limit gives the bounds of the pool's idle limit: it kept connections that were idle as long as one was on average
// between its calls, and closed those that were idle as long as one was at its end. AtLeast is 0 where each had one
// call only.
func limit(r connection.Redial) (atLeast, atMost int64) {
	atMost = r.Closed[0].IdleNs
	for _, k := range r.Closed {
		atMost = min(atMost, k.IdleNs)
		if gaps := k.AppCalls() - 1; gaps > 0 && k.OpenNs > 0 {
			atLeast = max(atLeast, (k.CloseNs-k.OpenNs-k.IdleNs-k.InFlightNs)/gaps)
		}
	}
	if atLeast > atMost { // something else closed some
		return 0, caller.PercentilesOf(r.Closed, func(k *caller.Conn) int64 { return k.IdleNs }).P10
	}
	return atLeast, atMost
}

func limitText(atLeast, atMost int64) string {
	switch {
	case 2*atLeast < atMost:
		return "at most " + format.Brief(atMost)
	case float64(atLeast) >= degree.NearlyAll*float64(atMost):
		return "about " + format.Brief((atLeast+atMost)/2)
	}
	return format.Brief(atLeast) + " to " + format.Brief(atMost)
}
