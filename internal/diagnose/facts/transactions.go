package facts

import "slowpath/internal/recording/series"

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
	Callers []*Caller
}

// Transactions adds up those of all callers on whose connections a transaction failed.
func (n *Node) Transactions() (sum Transactions) {
	for _, by := range n.Callers() {
		failed := sum.Failed
		for _, c := range by.Conns {
			if f := n.lastOf(c, series.TransactionsFailed); f > 0 {
				sum.Failed += f
				sum.Done += n.lastOf(c, series.Transactions)
				sum.FailedNs += n.lastOf(c, series.TransactionsFailedTime)
			}
		}
		if sum.Failed > failed {
			sum.Callers = append(sum.Callers, by)
		}
	}
	return sum
}
