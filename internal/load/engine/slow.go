//go:build linux

package engine

import "slowpath/internal/load/workload"

// Slow is calls of one connection with the same times, in nanoseconds of Options.Clock.
type Slow struct {
	Worker, Conn int // the connection's index in the worker; -1: none, or one of a pool
	Op           uint16
	Calls        int64
	IntendedNs   int64
	SentNs       int64
	EndNs        int64
	Unanswered   bool // there was no reply by EndNs, the end of the load
}

// reportSlow reports a group of calls.
func (w *worker) reportSlow(c *conn, g *group) {
	w.r.OnSlow(Slow{
		Worker: w.index, Conn: c.index, Op: g.op, Calls: g.n, IntendedNs: g.intended, SentNs: g.sent,
		EndNs: w.now,
	})
}

// reportSlow reports a slow call of a pool, without its connection, which is another one each time.
func (c *client) reportSlow(q *workload.Request, now int64) {
	if f := c.current; now-f.due >= c.r.SlowFrom.Load() {
		c.r.OnSlow(Slow{
			Worker: c.counts.index, Conn: -1, Op: q.Op, Calls: 1, IntendedNs: f.due, SentNs: f.sent,
			EndNs: now,
		})
	}
}
