package mainthread

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording/series"
)

// Transactions are those of callers that watched keys (WATCH … EXEC), where some failed because another client had
// changed a key meanwhile.
type Transactions struct {
	// Done is the number of transactions, up to the reply to EXEC.
	Done int64
	// Failed is how many of them changed nothing.
	Failed int64
	// FailedNs is what these took, from WATCH to the reply to EXEC, in nanoseconds.
	FailedNs int64
	// Callers are those who made them.
	Callers []*caller.Caller
}

// TransactionsOf adds up those of all callers on whose connections a transaction failed.
func TransactionsOf(n *facts.Node) (sum Transactions) {
	for _, by := range caller.Callers(n) {
		failed := sum.Failed
		for _, c := range by.Conns {
			if f := caller.LastThreadOf(n, c, series.TransactionsFailed); f > 0 {
				sum.Failed += f
				sum.Done += caller.LastThreadOf(n, c, series.Transactions)
				sum.FailedNs += caller.LastThreadOf(n, c, series.TransactionsFailedTime)
			}
		}
		if sum.Failed > failed {
			sum.Callers = append(sum.Callers, by)
		}
	}
	return sum
}
