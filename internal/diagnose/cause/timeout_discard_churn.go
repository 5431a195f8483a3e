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

// timeoutDiscardChurn: a call that is given up costs its connection: the client closes it, since a late reply would be
// taken for that of the next call, and dials again.
var timeoutDiscardChurn = Cause{
	ID:      "timeout-discard-churn",
	Class:   Redial,
	Options: []remedy.Topic{remedy.LongerTimeout},
	// An unreadable reply is given up as well, and its connection with it.
	AfterClass: []Class{ServerStall}, // it is the slow moments that are given up
	After: []string{
		"cmdinfo-once-lock", "replica-loading-or-readonly-routing", "failover-window",
		"stale-topology-silent-master",
	},
	Explain: explainTimeouts,
}

func explainTimeouts(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	var found []*caller.Caller
	var all connection.Redial
	var cost, given, calls, failed int64
	lost := map[string]bool{} // requests that were never acknowledged: no timeout would have been long enough
	for _, s := range connection.UnansweredRequests(n) {
		lost[s.Client] = lost[s.Client] || s.Retransmits >= connection.UnansweredRetransmits
	}
	unanswered := connection.NeverAnswered(n, callers) // no timeout would have been long enough for those either
	for _, r := range connection.Redials(callers, func(k *caller.Conn) bool {
		return k.ClosedWaiting() && !lost[k.Client] && !unanswered[k]
	}) {
		found, cost = append(found, r.Caller), cost+r.CostNs()
		calls, failed = calls+r.AppCalls(), failed+int64(len(r.Closed))
		for _, k := range r.Closed {
			given += k.IdleNs // since the request was sent: waited for nothing
		}
		if len(r.Closed) > len(all.Closed) {
			all = r
		}
	}
	if len(found) == 0 {
		return nil
	}
	l := connection.OverheadOf(n, callers)
	f := findingOfLosses(l, n, cost+given)
	switch { // a call that is given up has failed, however little time that took
	case f == nil && float64(failed) > facts.HealthyMaxShare*float64(calls+failed):
		f = lossesOf(l, n, cost+given, facts.HealthyMaxNs)
	case f == nil:
		return nil
	}
	age := caller.PercentilesOf(all.Closed, func(k *caller.Conn) int64 { return k.IdleNs })
	f.support(recording.SourceTap, float64(len(all.Closed)), "connections", "%s closed %s with a call unanswered, of "+
		"%d that it closed: %s of its calls were given up", all.Name, counted(len(all.Closed), "connection"),
		len(all.ConnsWhere(func(k *caller.Conn) bool { return k.ClosedBy == recording.Client })),
		format.Percent(float64(len(all.Closed))/float64(int64(len(all.Closed))+all.AppCalls())))
	// A timeout ends no call early. Timers may be late on a busy machine, but most are not.
	if float64(age.P10) >= degree.Most*float64(age.Median) {
		f.support(recording.SourceTap, float64(age.P10), "ns",
			"the calls given up were %s to %s old (median %s): a timeout of about %s", format.Brief(age.P10),
			format.Brief(age.P90), format.Brief(age.Median), format.Brief(age.P10))
	} else {
		f.doubt(recording.SourceTap, float64(age.Median), "ns",
			"the calls given up were %s to %s old: not one timeout, but callers "+
				"that go away, or deadlines of whole requests", format.Brief(age.P10), format.Brief(age.P90))
	}
	f.supportOpening(all)
	f.support(recording.SourceTap, float64(cost+given), "ns",
		"%s of waiting was for nothing, and %s went into new connections", format.Brief(given), format.Brief(cost))
	longest := int64(0)
	for _, e := range n.Events(recording.SourceServer, recording.KindSlowlog) {
		longest = max(longest, e.DurationNs)
	}
	if longest >= age.P10 {
		f.support(recording.SourceServer, float64(longest), "ns",
			"SLOWLOG has commands of up to %s: calls that wait for those are given up", format.Brief(longest))
	}
	f.doubtRemote(all.Caller)
	f.blameLoads(n, found...)
	f.FixSteps = append(offered(n, remedy.LongerTimeout, nil, fmt.Sprintf("Wait longer than the slowest "+
		"healthy calls take: not %s but some times the 99.9th percentile. What made them slow stays, and has a fix of "+
		"its own", format.Brief(age.P10)), found...), inApplication("limit-retries", "Limit retries, or use a circuit "+
		"breaker, so that a slow moment does not become a storm of dials"))
	return f
}
