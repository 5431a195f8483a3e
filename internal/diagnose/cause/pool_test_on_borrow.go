package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// poolTestOnBorrow: the pool sends PING before it hands out a connection: each call takes two round trips.
var poolTestOnBorrow = Cause{
	ID:    "pool-test-on-borrow",
	Title: "The client's pool tests each connection with PING before a call: two round trips instead of one",
	Layer: "client",
	Needs: Needs{
		T0: "commandstats: ping nearly as often as all other commands",
		T2: "the PINGs of the callers on this host, and their time",
	},
	Mechanism: "The pool sends PING and waits for its reply before it hands out a connection: each call takes " +
		"two round trips.",
	RuledOut: "PING that is rare beside the other commands",
	LookAlikes: []LookAlike{
		{"n-plus-one-roundtrips", "there the round trips are calls for data"},
		{"rtt-floor", "there a call takes one long round trip"},
	},
	Remedy:  "Test idle connections in the background, or only those that were idle for long.",
	Options: []remedy.Topic{remedy.TestIdleOnly},
	See: []string{
		"https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool",
		"https://commons.apache.org/proper/commons-pool/api-2.12.0/org/apache/commons/pool2/impl/BaseObjectPoolConfig.html",
	},
	Explain: explainBorrowPings,
}

// share is the share of PING in the callers' time.
func share(p facts.Pings) float64 {
	if p.PingNs > 0 {
		return float64(p.PingNs) / float64(p.PingNs+p.OthersNs)
	}
	return p.Count / (p.Count + p.Others)
}

func explainBorrowPings(n *facts.Node) *Finding {
	p, ok := n.BorrowPings()
	if !ok {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.support(p.Source, p.Count, "calls",
		"the callers send %.0f PINGs for %.0f other commands (%.0f %%), "+
			"%s per second; slowpath's own are not counted", p.Count, p.Others, p.Count*100/p.Others,
		format.Rounded(p.Count/n.Seconds()))
	if p.PingNs > 0 {
		f.lose(n, facts.LostOpening, float64(p.PingNs), p.PingNs/int64(p.Count))
		f.support(p.Source, share(p), "of the time",
			"a PING takes %s, another command %s: PINGs are %.0f %% of what the callers wait for",
			format.Brief(p.PingNs/int64(p.Count)), format.Brief(p.OthersNs/int64(p.Others)), share(p)*100)
		if callers := n.Callers(); len(callers) > 0 {
			f.support(recording.SourceTap, float64(len(callers)), "callers",
				"the callers are %s, with up to %s", facts.CallerNames(callers), counted(callers[0].MaxConcurrent(),
					"connection"))
		}
	} else {
		f.loseOfCalls(n, share(p), 0)
		f.doubt(p.Source, 0, "", "whether each PING comes before a call on the same connection was not seen")
	}
	f.FixSteps = remedy.Steps(n, remedy.TestIdleOnly, nil)
	return f
}
