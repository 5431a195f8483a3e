package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// opening tells what a new connection costs before its first command, and what is asked on it.
func (f *Finding) opening(r facts.Redial) {
	cost, trips := facts.SpreadOf(r.Fresh, (*facts.Conn).OpeningNs),
		facts.SpreadOf(r.Fresh, func(k *facts.Conn) int64 { return int64(k.Trips()) })
	dial := facts.SpreadOf(r.Fresh, func(k *facts.Conn) int64 { return k.DialNs })
	text := fmt.Sprintf("a new connection costs %s before its first command (dial %s", facts.Dur(cost.Mid),
		facts.Dur(dial.Mid))
	if ops := facts.GreetingOf(r.Fresh); ops != "" {
		text += fmt.Sprintf(", then %d round trips: %s", trips.Mid, ops)
	}
	f.support(recording.SourceTap, text+fmt.Sprintf("); a call takes %s", facts.Dur(r.CallNs())), float64(cost.Mid),
		"ns")
}

// remote says that the time of calls was seen from the server's end only.
func (f *Finding) remote(c *facts.Caller) {
	if c.PID == 0 {
		f.Confidence -= 0.1
		f.doubt(recording.SourceTap, "the callers run on other hosts: their processes and the time of their dials "+
			"were not seen (watch one of them, too)", 0, "")
	}
}

// finding starts the finding of a cause that took some of the callers' time; nil where that is too little for anybody
// to notice.
func findingOfLosses(l facts.LostTime, n *facts.Node, ns int64, confidence float64) *Finding {
	if float64(ns) < facts.MinShare*float64(l.SpentNs) {
		return nil
	}
	all := max(l.OpeningNs+l.GivenUpNs+l.PingNs+l.LookupNs, ns) + l.ExcessNs
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: confidence, ExcessShare: float64(ns) / float64(max(all, 1))}
	f.support(recording.SourceTap, fmt.Sprintf("that took %s of the %s that the callers spent on their connections "+
		"(%.0f %%)", facts.Dur(ns), facts.Dur(l.SpentNs), 100*float64(ns)/float64(l.SpentNs)), float64(ns), "ns")
	return f
}
