package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// transactionConflicts: EXEC is answered by null where another client has changed a watched key since WATCH
// (multi.c, execCommand). The caller tries again.
var transactionConflicts = Cause{
	ID:         "transaction-conflicts",
	AfterClass: []Class{ServerStall}, // the longer a try takes, the more of them fail
	Explain:    explainTransactions,
}

func explainTransactions(n *facts.Node) *Finding {
	t := mainthread.TransactionsOf(n)
	succeeded := max(t.Done-t.Failed, 1)
	each := t.FailedNs / succeeded
	of := facts.Affected{Calls: int(t.Failed), Share: float64(t.Failed) / float64(max(t.Done, 1))}
	if !of.Pattern() || each < n.NoticedNs() {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls(), Samples: int(t.Failed)}
	f.lose(n, facts.LostWaiting, float64(t.FailedNs), each)
	f.support(recording.SourceTap, float64(t.Failed), "transactions", "%d of %d transactions changed nothing: another "+
		"client had changed a key that they watched (%s)", t.Failed, t.Done, caller.CallerNames(t.Callers))
	f.support(recording.SourceTap, float64(each), "ns", "each took %s, from WATCH to the null reply to EXEC; for one "+
		"that succeeded callers had lost %s by then", format.Brief(t.FailedNs/t.Failed), format.Brief(each))
	f.FixSteps = []remedy.Step{
		inApplication("one-script", "Read and write in one call, which nothing can come between: a command (INCRBY, "+
			"HINCRBY, SET with NX or GET), a script (EVAL), or a function (FCALL)"),
		orElse(inApplication("watch-shorter", "Do what takes long before WATCH, watch fewer or smaller keys, and wait "+
			"a random time before the next try")),
	}
	return f
}
