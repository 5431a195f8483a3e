package engine

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/wire/session"
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
	// Late is how much later than intended the worker itself sent what it could have sent: an open loop's own
	// inaccuracy, in ns.
	Late              *hdrhistogram.Histogram
	BytesOut, BytesIn int64
	Errors            map[string]int64 // calls that went wrong: error replies by code, and the Failed by kind
	// connections that went wrong and no call with them: attempts to connect, and ends, by kind
	ConnErrors        map[string]int64
	Waits, Reads      int64 // system calls: epoll_wait, read
	Writes            int64
	CPUNs, RunQueueNs int64 // of the worker's thread: on the CPU, and ready but without one
	SpunNs            int64 // of CPUNs, about: it looked whether something had come, without sleeping, and nothing had
	InFlight, Unsent  int64 // at the end of the second: calls without reply; due and not sent
	Connected         int
	Lost, Reconnected int64 // connections that ended by themselves, and that came back
	Retired           int64 // connections that were closed by plan (PerCall, ReconnectEvery)
	// Begun is the calls that were sent, or whose connection was begun to be opened. Each has a reply (it is one of
	// Calls), or it is one of Failed, or of Result.InFlight in the end.
	Begun, Failed int64
	TimedOut      int64 // of Failed, those that had no reply within Options.Timeout
	Dials         DialTally
	// Options.Pool: from the time a call was due until it had a connection, ns; else nil
	PoolWait       *hdrhistogram.Histogram
	Delivered      int64 // messages that subscribers got, and
	DeliveredBytes int64 // what they were on the wire
	// from the time a call was due until a subscriber had its message, ns; nil without {due} in messages
	Delivery *hdrhistogram.Histogram
	// Options.Verify: wrong replies, by what was wrong; those after maxKinds different ones as "other"
	Mismatches map[string]int64

	// Of a routed load:
	// replies to calls that were sent again, by their code: MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, …
	Again map[string]int64
	Nodes map[string]int64 // calls that had a reply, by the node's address

	EndNs   int64 // when the worker passed it on, or ended sending, from the start of the load
	Last    bool  // the worker has ended
	Drained int64 // calls whose reply came after the end of sending: they belong to the latencies, and not to the rate
	// AgeFromSend and AgeFromIntended are of the calls that had no reply when the load ended: each took at least that
	// long. The second has those too that the schedule had due and nobody sent. nil where there are none, and the
	// second in a closed loop.
	AgeFromSend, AgeFromIntended *hdrhistogram.Histogram
}

// OpTally counts the calls of one op.
type OpTally struct {
	Calls, Errors, Misses int64
	Service               *hdrhistogram.Histogram // from the send, ns
	// from the intended time, ns; nil where no call is due before it is sent, so that they are the same
	Response *hdrhistogram.Histogram
}

// NewTally is an empty tally of a load with so many ops; twoTimes as Options.TwoTimes.
func NewTally(ops int, twoTimes bool) *Tally {
	t := &Tally{
		Ops: make([]OpTally, ops), Errors: map[string]int64{}, ConnErrors: map[string]int64{},
		Mismatches: map[string]int64{},
		Again:      map[string]int64{}, Nodes: map[string]int64{},
	}
	for i := range t.Ops {
		t.Ops[i].Service = NewHistogram()
		if twoTimes {
			t.Ops[i].Response = NewHistogram()
		}
	}
	if twoTimes {
		t.Late = NewHistogram()
	}
	return t
}

// Reset makes a tally that was added to the total fit for another second.
func (t *Tally) Reset() {
	clear(t.Errors)
	clear(t.ConnErrors)
	clear(t.Mismatches)
	clear(t.Again)
	clear(t.Nodes)
	t.Dials.reset()
	*t = Tally{
		Ops: t.Ops, Late: t.Late, Errors: t.Errors, ConnErrors: t.ConnErrors, Mismatches: t.Mismatches,
		Dials: t.Dials, PoolWait: t.PoolWait,
		Again: t.Again, Nodes: t.Nodes,
	}
	if t.PoolWait != nil {
		t.PoolWait.Reset()
	}
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
		mergeInto(&a.Response, b.Response)
	}
	mergeInto(&t.Late, u.Late)
	mergeInto(&t.PoolWait, u.PoolWait)
	mergeInto(&t.Delivery, u.Delivery)
	mergeInto(&t.AgeFromSend, u.AgeFromSend)
	mergeInto(&t.AgeFromIntended, u.AgeFromIntended)
	t.Dials.merge(&u.Dials)
	addKinds(t.Errors, u.Errors)
	addKinds(t.ConnErrors, u.ConnErrors)
	addKinds(t.Mismatches, u.Mismatches)
	t.BytesOut += u.BytesOut
	t.BytesIn += u.BytesIn
	t.Waits += u.Waits
	t.Reads += u.Reads
	t.Writes += u.Writes
	t.CPUNs += u.CPUNs
	t.RunQueueNs += u.RunQueueNs
	t.SpunNs += u.SpunNs
	t.Lost += u.Lost
	t.Reconnected += u.Reconnected
	t.Retired += u.Retired
	t.Begun += u.Begun
	t.Failed += u.Failed
	t.TimedOut += u.TimedOut
	t.Delivered += u.Delivered
	for k, n := range u.Again {
		t.Again[k] += n
	}
	for k, n := range u.Nodes {
		t.Nodes[k] += n
	}
	t.DeliveredBytes += u.DeliveredBytes
	t.Drained += u.Drained
}

func addKinds(to, from map[string]int64) {
	for kind, n := range from {
		countKind(to, kind, n)
	}
}

// dialed counts an attempt to connect, which may have been for one call only.
func (t *Tally) dialed(o *session.Opening, whole time.Duration, err error, forCall bool) {
	t.Dials.SynRetrans += o.SynRetrans
	if err != nil {
		t.Dials.Failed++
		if !forCall { // else the call tells of it
			countKind(t.ConnErrors, errorKind(err), 1)
		}
		return
	}
	t.Dials.add(o.DNS, o.Connect, o.TLS, o.Handshake, whole)
}

// Calls is the number of calls that had a reply.
func (t *Tally) Calls() (n int64) {
	for i := range t.Ops {
		n += t.Ops[i].Calls
	}
	return n
}
