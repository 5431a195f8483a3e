package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// poolWaitSeen adds the goroutines or threads that wait for a connection. They are the fact itself, and need no other.
func poolWaitSeen(c *facts.Case, f *Finding) *Finding {
	w, ok := c.WorstWait(facts.InPool)
	if !ok || w.Share < facts.PoolWaitLeast {
		if f != nil && len(c.Apps) > 0 && c.SameCallers(c.Apps) {
			return nil // all who call were looked at, and none of them waits
		}
		return f
	}
	if f == nil {
		f = &Finding{
			Of: len(c.Ledger.Slow), Fix: facts.PoolSeenFix(w),
			See: []string{"https://redis.io/docs/latest/develop/clients/pools-and-muxing/"},
		}
	}
	rest := f.Evidence
	f.Evidence, f.Against = nil, nil // what spoke against it was that waiting is not seen from outside
	f.Confidence, f.ExcessShare = 0.95, max(f.ExcessShare, w.Share)
	f.supportWait(w)
	if n, ok := w.App.Waits(func(m stacks.Meaning) bool {
		return m.State == stacks.Reply ||
			m.State == stacks.Send
	}); ok {
		f.support(recording.SourceProfile, fmt.Sprintf("%s: %d meanwhile send, or wait for a reply: so many "+
			"connections are in use", w.App.Called(), n.Count), float64(n.Count), w.App.Units())
	}
	f.Evidence = append(f.Evidence, rest...)
	return f
}
