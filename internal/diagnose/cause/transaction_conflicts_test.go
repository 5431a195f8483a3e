package cause_test

import (
	"testing"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

func TestTransactionConflicts(t *testing.T) {
	calls := func() edge { return newPath().lane(pathClient, 300, edgeMs/20, 3*edgeMs) }
	explainEdge(t, find("transaction-conflicts"), []edgeCase{
		{
			name: "four of five fail", rec: calls().transacted(500, 400, 1200*edgeMs), found: true,
			evidence: "400 of 500 transactions changed nothing", fix: "EVAL",
		},
		{
			name: "few fail, and each has taken long", rec: calls().transacted(500, 20, 3000*edgeMs), found: true,
			evidence: "each took 150 ms", fix: "EVAL",
		},
		{name: "some fail, and nobody notices", rec: calls().transacted(500, 100, 300*edgeMs)},
		{name: "two fail", rec: calls().transacted(3, 2, 300*edgeMs)},
		{name: "none", rec: calls()},
	})
}

// transacted has transactions that watched keys on the connection of pathClient.
func (r edge) transacted(done, failed, failedNs int64) edge {
	for of, v := range map[series.Name]int64{
		series.Transactions: done, series.TransactionsFailed: failed, series.TransactionsFailedTime: failedNs,
	} {
		r.Sample(recording.Sample{
			TimeNs: edgeEnd, Source: of.Source, Subject: of.About(pathClient), Name: of.Name, Value: float64(v),
		})
	}
	return r
}
