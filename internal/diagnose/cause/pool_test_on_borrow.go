package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

// poolTestOnBorrow: the pool sends PING before it hands out a connection: each call takes two round trips.
var poolTestOnBorrow = Cause{
	ID:      "pool-test-on-borrow",
	Options: []remedy.Topic{remedy.TestIdleOnly},
	Explain: explainBorrowPings,
}

// share is the share of PING in the callers' time.
func share(p connection.Pings) float64 {
	if p.PingNs > 0 {
		return float64(p.PingNs) / float64(p.PingNs+p.OthersNs)
	}
	return p.Count / (p.Count + p.Others)
}

func explainBorrowPings(n *facts.Node) *Finding {
	p, ok := connection.BorrowPings(n)
	if !ok {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.support(p.Source, p.Count, "calls", "the callers send %.0f PINGs for %.0f other commands (%.0f %%), %s per "+
		"second; slowpath's own are not counted", p.Count, p.Others, p.Count*100/p.Others,
		format.Rounded(p.Count/n.Seconds()))
	if p.PingNs > 0 {
		f.lose(n, facts.LostOpening, float64(p.PingNs), p.PingNs/int64(p.Count))
		f.support(p.Source, share(p), "of the time",
			"a PING takes %s, another command %s: PINGs are %.0f %% of what the callers wait for",
			format.Brief(p.PingNs/int64(p.Count)), format.Brief(p.OthersNs/int64(p.Others)), share(p)*100)
	} else {
		f.loseOfCalls(n, share(p), 0)
		f.doubt(p.Source, 0, "", "whether each PING comes before a call on the same connection was not seen")
	}
	f.FixSteps = remedy.Steps(n, remedy.TestIdleOnly, nil)
	return f
}
