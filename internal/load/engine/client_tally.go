//go:build linux

package engine

import (
	"sync"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// clientTally counts the calls of some of the clients of a pool. There is one per thread, so that clients seldom wait
// for its lock, which a call holds for some 10 ns.
type clientTally struct {
	mu            sync.Mutex
	r             *run
	index         int
	tally         *Tally
	spare         *Tally
	calls         []*clientCall
	inFlight      int64
	ending        bool  // no more calls begin
	repliesBefore int64 // replies in the current second before the end of sending
}

// clientCall is the call of a client, one at a time. Times are by the clock.
type clientCall struct {
	due, sent int64 // sent: 0 while it waits for a connection
	active    bool  // it has begun and has not ended
}

func newClientTally(r *run, index int) *clientTally {
	c := &clientTally{r: r, index: index, tally: r.NewTally(), spare: r.NewTally()}
	c.tally.Worker, c.spare.Worker = index, index
	for _, t := range []*Tally{c.tally, c.spare} {
		t.PoolWait = NewHistogram()
	}
	return c
}

// add adds a client.
func (c *clientTally) add() *clientCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &clientCall{}
	c.calls = append(c.calls, f)
	return f
}

func (c *clientTally) begin(f *clientCall, due int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*f = clientCall{due: due, active: true}
	c.tally.Begun++
	c.inFlight++
}

// sent counts that a call was sent, after it had borrowed a connection at taken.
func (c *clientTally) sent(f *clientCall, taken, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.sent = now
	_ = c.tally.PoolWait.RecordValue(min(max(taken-f.due, 0), maxLatency)) // in range
	c.tally.Writes++
}

func (c *clientTally) replied(f *clientCall, q workload.Request, a *callResult, requestBytes int, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended(f)
	t, o := c.tally, &c.tally.Ops[q.Op]
	o.add(now-f.sent, now-f.due, 1)
	t.Reads += a.reads
	t.BytesIn += a.bytes
	t.BytesOut += int64(requestBytes)
	o.Errors += a.errors
	o.Misses += a.misses
	for code, n := range a.codes {
		countKind(t.Errors, code, n)
	}
	if a.mismatch != nil {
		countKind(t.Mismatches, a.mismatch.Error(), 1)
	}
}

// ended is called with the lock held.
func (c *clientTally) ended(f *clientCall) {
	f.active = false
	c.inFlight--
}

// lost counts a call whose connection failed with err, or which timed out.
func (c *clientTally) lost(f *clientCall, err error) {
	kind := errorKind(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if timedOut(err) {
		kind = kindTimeout
		c.tally.TimedOut++
	}
	c.tally.Lost++
	c.fail(f, kind)
}

// fail is called with the lock held.
func (c *clientTally) fail(f *clientCall, kind string) {
	c.ended(f)
	c.tally.Failed++
	countKind(c.tally.Errors, kind, 1)
}

// dialed counts an attempt to connect, and the failure of the call that waited for it.
func (c *clientTally) dialed(f *clientCall, d *dialed, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.dialed(&d.opening, d.took(), d.err, f != nil)
	switch {
	case d.err != nil && f != nil:
		c.fail(f, errorKind(d.err))
	case d.err == nil && again:
		c.tally.Reconnected++
	}
}

func (c *clientTally) late(ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.tally.Late.RecordValue(min(max(ns, 0), maxLatency)) // in range
}

// stop is the end of sending.
func (c *clientTally) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending, c.repliesBefore = true, c.tally.Calls()
}

// unsent counts a call that was due by the schedule this long before the end, and never sent.
func (c *clientTally) unsent(age int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Unsent++
	c.tally.age(&c.tally.AgeFromIntended, age)
}

// closeSecond ends the current second at now, or the load when it is the last.
func (c *clientTally) closeSecond(second int, now int64, last bool) *Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	c.tally, c.spare = c.spare, nil
	if c.tally == nil {
		c.tally = c.r.NewTally()
		c.tally.PoolWait = NewHistogram()
	}
	c.tally.Second, c.tally.Worker = second, t.Worker
	t.InFlight, t.EndNs, t.Last = c.inFlight, now-c.r.start, last
	if c.ending {
		t.Drained = t.Calls() - c.repliesBefore
		c.repliesBefore = 0
	}
	if last {
		c.countUnanswered(t, now)
	}
	return t
}

// countUnanswered counts the calls that have no reply, by their age.
func (c *clientTally) countUnanswered(t *Tally, now int64) {
	for _, f := range c.calls {
		if !f.active {
			continue
		}
		if f.sent > 0 {
			t.age(&t.AgeFromSend, now-f.sent)
		}
		t.age(&t.AgeFromIntended, now-f.due)
	}
}

// recycle takes back a tally that was passed on.
func (c *clientTally) recycle(t *Tally) {
	t.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = t
}

// cpuOfProcess is the CPU time that this process has used, user and system, in ns.
func cpuOfProcess() int64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // does not fail (getrusage(2))
	return u.Utime.Nano() + u.Stime.Nano()
}
