package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept from 1 ns to longest with 3 significant digits; nothing is clamped below that.
const longest = int64(time.Hour)

// NewHistogram is a histogram of nanoseconds as all of a load are, so that they can be added up.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 3) }

// Tally is what one worker counted in one second.
type Tally struct {
	Second int // from the start of the load
	Worker int
	Ops    []OpTally // in the order of the workload
	// Late is how much later than intended the worker itself sent what it could have sent: an open loop's own inaccuracy, in ns.
	Late               *hdrhistogram.Histogram
	BytesOut, BytesIn  int64
	Errors             map[string]int64 // error replies by code, and what went wrong with connections
	Waits, Reads       int64            // system calls: epoll_wait, read
	Writes             int64
	EmptyWaits         int64 // of Waits: nothing had come. Spinning, they are what is left of a thread
	CPUNs, RunQueueNs  int64 // of the worker's thread: on the CPU, and ready but without one
	InFlight, Unsent   int64 // at the end of the second: calls without reply; due and not sent
	Connected          int
	Lost, Reconnected  int64 // connections
	MovedAsk, TryAgain int64

	EndNs   int64 // when the worker passed it on, or ended sending, from the start of the load
	Last    bool  // the worker has ended
	Drained int64 // calls whose reply came after the end of sending: they belong to the latencies, and not to the rate
	// AgeFromSend and AgeFromIntended are of the calls that had no reply when the load ended: each took at least that long. The second has
	// those too that the schedule had due and nobody sent. nil where there are none, and the second in a closed loop.
	AgeFromSend, AgeFromIntended *hdrhistogram.Histogram
}

// OpTally counts the calls of one op.
type OpTally struct {
	Calls, Errors, Misses int64
	Service               *hdrhistogram.Histogram // from the send, ns
	Response              *hdrhistogram.Histogram // from the intended time, ns; nil in a closed loop, where they are the same
}

// NewTally is an empty tally of a load with so many ops.
func NewTally(ops int, open bool) *Tally {
	t := &Tally{Ops: make([]OpTally, ops), Errors: map[string]int64{}}
	for i := range t.Ops {
		t.Ops[i].Service = NewHistogram()
		if open {
			t.Ops[i].Response = NewHistogram()
		}
	}
	if open {
		t.Late = NewHistogram()
	}
	return t
}

// Reset makes a tally that was added to the total fit for another second.
func (t *Tally) Reset() {
	clear(t.Errors)
	*t = Tally{Ops: t.Ops, Late: t.Late, Errors: t.Errors}
	for i, o := range t.Ops {
		o.Service.Reset()
		if o.Response != nil {
			o.Response.Reset()
		}
		t.Ops[i] = OpTally{Service: o.Service, Response: o.Response}
	}
	if t.Late != nil {
		t.Late.Reset()
	}
}

// add counts n calls of the same times.
func (o *OpTally) add(service, response, n int64) {
	o.Calls += n
	_ = o.Service.RecordValues(min(max(service, 0), longest), n) // in range
	if o.Response != nil {
		_ = o.Response.RecordValues(min(max(response, 0), longest), n)
	}
}

// Add adds another tally, of another worker or another second.
func (t *Tally) Add(u *Tally) {
	for i := range u.Ops {
		a, b := &t.Ops[i], &u.Ops[i]
		a.Calls += b.Calls
		a.Errors += b.Errors
		a.Misses += b.Misses
		a.Service.Merge(b.Service)
		if b.Response != nil {
			a.Response.Merge(b.Response)
		}
	}
	if u.Late != nil {
		t.Late.Merge(u.Late)
	}
	mergeAges(&t.AgeFromSend, u.AgeFromSend)
	mergeAges(&t.AgeFromIntended, u.AgeFromIntended)
	for k, n := range u.Errors {
		t.Errors[k] += n
	}
	t.BytesOut += u.BytesOut
	t.BytesIn += u.BytesIn
	t.Waits += u.Waits
	t.EmptyWaits += u.EmptyWaits
	t.Reads += u.Reads
	t.Writes += u.Writes
	t.CPUNs += u.CPUNs
	t.RunQueueNs += u.RunQueueNs
	t.Lost += u.Lost
	t.Reconnected += u.Reconnected
	t.MovedAsk += u.MovedAsk
	t.TryAgain += u.TryAgain
	t.Drained += u.Drained
}

// Calls is the number of calls that had a reply.
func (t *Tally) Calls() (n int64) {
	for i := range t.Ops {
		n += t.Ops[i].Calls
	}
	return n
}
