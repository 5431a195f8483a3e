package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// loseRefused claims the time that callers lose by refused calls. How long a caller goes without a result nobody knows:
// as long as a slow call at least.
func (f *Finding) loseRefused(n *facts.Node, calls float64) {
	lost := calls * float64(n.NoticedNs())
	f.lose(n, facts.LostWaiting, lost)
	f.ExcessShare = max(f.ExcessShare, lost/(lost+float64(n.Ledger.ExcessNs)))
}

// refusedSource is where it is known from how many calls of clients were refused.
func refusedSource(r facts.RefusedCalls) (source, how string) {
	if r.Counted {
		return recording.SourceServer, "errorstat_" + r.Code + "; slowpath's own are not counted"
	}
	return recording.SourceTap, "seen in the clients' connections"
}
