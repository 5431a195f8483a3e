//go:build linux

package engine

import "slowpath/internal/load/workload"

// Slow is calls of one connection that were meant, sent and answered at the same times. Times are nanoseconds of
// Options.Clock.
type Slow struct {
	Worker, Seat int // the connection: its place among those of the worker; -1: it was between two
	Op           uint16
	Calls        int64
	IntendedNs   int64
	SentNs       int64
	EndNs        int64
	Unanswered   bool // there was no reply until EndNs, when the load ended
}

// tellSlow passes on a group of calls.
func (w *worker) tellSlow(c *conn, g *group) {
	w.r.OnSlow(Slow{
		Worker: w.index, Seat: c.index, Op: g.op, Calls: g.n, IntendedNs: g.intended, SentNs: g.sent,
		EndNs: w.now,
	})
}

// tellSlow passes on a call that took long. Which connection it had is not told: it is another each time.
func (c *client) tellSlow(q *workload.Request, now int64) {
	if f := c.flight; now-f.due >= c.r.SlowFrom.Load() {
		c.r.OnSlow(Slow{
			Worker: c.book.index, Seat: -1, Op: q.Op, Calls: 1, IntendedNs: f.due, SentNs: f.sent,
			EndNs: now,
		})
	}
}
