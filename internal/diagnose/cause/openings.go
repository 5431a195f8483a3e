package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
)

// openedTogether starts the finding of a cause by which many connections were opened together in some spells: cost is
// what calls waited for them, openingNs what one took. It is nil where nobody can have noticed. Slow calls in the
// spells are a part of it: they are those of handshakes, and those that waited behind them.
func openedTogether(n *facts.Node, callers []*facts.Caller, spells facts.Spans, cost, openingNs int64,
	confidence float64) (*Finding,
	facts.Claim,
) {
	meanwhile := func(a account.Account) int64 { return spells.In(a.Call.IntendedNs, a.Call.EndNs) }
	felt, users := n.ClaimOf(meanwhile), n.TapClaim(meanwhile)
	l := n.LostTime(callers)
	took := cost + users.Ns
	many := float64(users.Users.Calls) > facts.HealthyMaxShare*float64(users.Users.Of)
	if float64(took) < facts.MinShare*float64(l.SpentNs) && max(openingNs, felt.MaxNs) < facts.HealthyMaxNs && !many {
		return nil, felt
	}
	f := finding(n, felt, confidence)
	f.SlowCalls = 0 // most of what it costs is before the calls
	all := l.OpeningNs + l.GivenUpNs + l.PingNs + l.ExcessNs
	f.ExcessShare = max(f.ExcessShare, min(1, float64(took)/float64(max(all, 1))))
	return f, felt
}
