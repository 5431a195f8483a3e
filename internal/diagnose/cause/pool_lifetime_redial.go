package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolLifetimeRedial: the pool closes connections at a certain age though they are in use, and the calls that would
// have used them pay for new ones. Connections that were opened together expire together.
var poolLifetimeRedial = Cause{
	ID:      "pool-lifetime-redial",
	Class:   Redial,
	Options: []remedy.Topic{remedy.LongerLifetime},
	Explain: explainLifetime,
}

func explainLifetime(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	lives := connection.LifetimesOf(n, callers)
	if len(lives) == 0 {
		return nil
	}
	var redials []connection.Redial
	var most connection.Lifetimes
	var spans facts.Spans
	var herd []facts.Span
	for _, l := range lives {
		redials = append(redials, l.Redial)
		if len(l.Closed) > len(most.Closed) {
			most = l
		}
		for _, together := range l.Herds {
			openings := connection.Openings(together.Conns)
			spans = append(spans, openings...)
			if len(openings) > len(herd) {
				herd = openings
			}
		}
	}
	sum := connection.SumRedials(redials)
	f := findingOfLosses(connection.OverheadOf(n, callers), n, sum.CostNs)
	if f == nil && len(herd) > 0 {
		f, _ = openedTogether(n, callers, facts.MergeSpans(spans), sum.CostNs, longestOpening(n))
	}
	if f == nil {
		return nil
	}
	f.Samples = sum.Count
	f.support(recording.SourceTap, float64(most.Ages.Median), "ns", "%s closed %s, each %s to %s old, between calls: "+
		"a maximum age of about %s", most.Name, counted(len(most.Closed), "connection"), format.Brief(most.Ages.P10),
		format.Brief(most.Ages.P90), format.Brief(most.Ages.P10))
	f.supportDialled(most.Redial)
	if len(herd) > 0 {
		f.support(recording.SourceTap, float64(len(herd)), "connections",
			"they expire together: up to %d were opened within %s, %d at the same time", len(herd),
			format.Brief(herd[len(herd)-1].ToNs-herd[0].FromNs), facts.MaxOverlap(herd))
	}
	f.doubtRemote(most.Caller)
	f.blameLoads(n, sum.Callers...)
	f.FixSteps = remedy.Steps(n, remedy.LongerLifetime, nil, sum.Callers...)
	return f
}
