//go:build linux

package engine

import (
	"sync"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// book is what some of the clients count in. Of its lock a call takes a few tens of ns; there is a book per thread, so
// that clients seldom wait for it.
type book struct {
	mu       sync.Mutex
	r        *run
	index    int
	tally    *Tally
	spare    *Tally
	flights  []*bookedCall
	inFlight int64
	ending   bool  // no more calls begin
	before   int64 // calls that had a reply until then, of the running second
}

// bookedCall is the call of a client, of which there is one at a time. Times are by the clock.
type bookedCall struct {
	due, sent int64 // sent: 0 while it waits for a connection
	under     bool  // it is under way
}

func newBook(r *run, index int) *book {
	b := &book{r: r, index: index, tally: r.NewTally(), spare: r.NewTally()}
	b.tally.Worker, b.spare.Worker = index, index
	for _, t := range []*Tally{b.tally, b.spare} {
		t.PoolWait = NewHistogram()
	}
	return b
}

// open gives a client its place in the book.
func (b *book) open() *bookedCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := &bookedCall{}
	b.flights = append(b.flights, f)
	return f
}

func (b *book) begin(f *bookedCall, due int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*f = bookedCall{due: due, under: true}
	b.tally.Begun++
	b.inFlight++
}

// sent notes when a call was sent, after it waited for its connection until taken.
func (b *book) sent(f *bookedCall, taken, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.sent = now
	_ = b.tally.PoolWait.RecordValue(min(max(taken-f.due, 0), longest)) // in range
	b.tally.Writes++
}

func (b *book) replied(f *bookedCall, q workload.Request, a *answer, requestBytes int, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended(f)
	t, o := b.tally, &b.tally.Ops[q.Op]
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
func (b *book) ended(f *bookedCall) {
	f.under = false
	b.inFlight--
}

// lost counts a call whose connection ended with err, or which waited for too long.
func (b *book) lost(f *bookedCall, err error) {
	kind := errorKind(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if timedOut(err) {
		kind = kindTimeout
		b.tally.TimedOut++
	}
	b.tally.Lost++
	b.fail(f, kind)
}

// fail is called with the lock held.
func (b *book) fail(f *bookedCall, kind string) {
	b.ended(f)
	b.tally.Failed++
	countKind(b.tally.Errors, kind, 1)
}

// dialed counts an attempt to connect, and that the call that wanted it has failed where it has.
func (b *book) dialed(f *bookedCall, d *dialed, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tally.dialed(&d.opening, d.took(), d.err, f != nil)
	switch {
	case d.err != nil && f != nil:
		b.fail(f, errorKind(d.err))
	case d.err == nil && again:
		b.tally.Reconnected++
	}
}

func (b *book) late(ns int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.tally.Late.RecordValue(min(max(ns, 0), longest)) // in range
}

// stop notes the end of sending.
func (b *book) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ending, b.before = true, b.tally.Calls()
}

// unsent counts a call that the schedule had due so long before the end.
func (b *book) unsent(age int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tally.Unsent++
	b.tally.age(&b.tally.AgeFromIntended, age)
}

// take closes the running second at now, or the load when it is the last.
func (b *book) take(second int, now int64, last bool) *Tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tally
	b.tally, b.spare = b.spare, nil
	if b.tally == nil {
		b.tally = b.r.NewTally()
		b.tally.PoolWait = NewHistogram()
	}
	b.tally.Second, b.tally.Worker = second, t.Worker
	t.InFlight, t.EndNs, t.Last = b.inFlight, now-b.r.start, last
	if b.ending {
		t.Drained = t.Calls() - b.before
		b.before = 0
	}
	if last {
		b.abandon(t, now)
	}
	return t
}

// abandon counts the calls that have no reply with their age.
func (b *book) abandon(t *Tally, now int64) {
	for _, f := range b.flights {
		if !f.under {
			continue
		}
		if f.sent > 0 {
			t.age(&t.AgeFromSend, now-f.sent)
		}
		t.age(&t.AgeFromIntended, now-f.due)
	}
}

// giveBack takes a tally that was told.
func (b *book) giveBack(t *Tally) {
	t.Reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = t
}

// cpuOfProcess is the CPU time that this process has used, user and system, in ns.
func cpuOfProcess() int64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // does not fail (getrusage(2))
	return u.Utime.Nano() + u.Stime.Nano()
}
