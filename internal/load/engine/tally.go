package engine

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/wire/session"
)

// maxLatency bounds histograms: from 1 ns to an hour, with 3 significant digits.
const maxLatency = int64(time.Hour)

// NewHistogram is a histogram of nanoseconds. All of a load have the same scale, so that they can be added up.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

// Tally is what one worker counted in one second.
type Tally struct {
	Second int // from the start of the load
	Worker int
	Ops    []OpTally // in the order of the workload
	// Late is the worker's own delay in an open loop: how much later than intended it sent calls that had a connection
	// with room, in ns.
	Late              *hdrhistogram.Histogram
	BytesOut, BytesIn int64
	Errors            map[string]int64 // of calls: error replies by code, and Failed by kind
	// of connections without calls: failed attempts to connect, and lost connections, by kind
	ConnErrors        map[string]int64
	Waits, Reads      int64 // system calls: epoll_wait, read
	Writes            int64
	CPUNs, RunQueueNs int64 // of the worker's thread: on a CPU, and in the run queue
	SpunNs            int64 // of CPUNs, about: polls without sleeping that found nothing
	InFlight, Unsent  int64 // at the end of the second: calls without reply; due and not sent
	Connected         int
	Lost, Reconnected int64 // connections that failed, and that were opened again
	Retired           int64 // connections that were closed as planned (PerCall, ReconnectEvery)
	// Begun counts the calls that were sent, or for which a connection was being opened. Each counts in Calls or in
	// Failed, or in Result.InFlight at the end.
	Begun, Failed int64
	TimedOut      int64 // of Failed: without a reply within Options.Timeout
	Dials         DialTally
	// Options.Pool: from the time a call was due until it had a connection, ns; else nil
	PoolWait       *hdrhistogram.Histogram
	Delivered      int64 // messages to subscribers
	DeliveredBytes int64 // of them on the wire
	// from the time a call was due until a subscriber had its message, ns; nil without {due} in messages
	Delivery *hdrhistogram.Histogram
	// Options.Verify: wrong replies, by what was wrong; those after maxKinds different ones as "other"
	Mismatches map[string]int64

	// Of a routed load:
	// replies after which a call was sent again, by their code: MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, …
	Retried map[string]int64
	Nodes   map[string]int64 // calls that had a reply, by the node's address

	EndNs   int64 // of the tally, or of sending, from the start of the load
	Last    bool  // the worker has ended
	Drained int64 // replies after the end of sending: they count in the latencies, not in the rate
	// AgeFromSend and AgeFromIntended are the ages of the calls without a reply at the end of the load: each took at
	// least that long. The second includes calls that were due and never sent; it is nil in a closed loop. Both are nil
	// without such calls.
	AgeFromSend, AgeFromIntended *hdrhistogram.Histogram
}

// OpTally counts the calls of one op.
type OpTally struct {
	Calls, Errors, Misses int64
	Service               *hdrhistogram.Histogram // from the send, ns
	// from the intended time, ns; nil where that is always the time of the send
	Response *hdrhistogram.Histogram
}

// NewTally is an empty tally of a load with this number of ops; twoTimes as Options.TwoTimes.
func NewTally(ops int, twoTimes bool) *Tally {
	t := &Tally{
		Ops: make([]OpTally, ops), Errors: map[string]int64{}, ConnErrors: map[string]int64{},
		Mismatches: map[string]int64{},
		Retried:    map[string]int64{}, Nodes: map[string]int64{},
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

// Reset empties a tally for another second, and keeps its memory.
func (t *Tally) Reset() {
	clear(t.Errors)
	clear(t.ConnErrors)
	clear(t.Mismatches)
	clear(t.Retried)
	clear(t.Nodes)
	t.Dials.reset()
	*t = Tally{
		Ops: t.Ops, Late: t.Late, Errors: t.Errors, ConnErrors: t.ConnErrors, Mismatches: t.Mismatches,
		Dials: t.Dials, PoolWait: t.PoolWait,
		Retried: t.Retried, Nodes: t.Nodes,
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

// add counts n calls with the same times.
func (o *OpTally) add(service, response, n int64) {
	o.Calls += n
	_ = o.Service.RecordValues(min(max(service, 0), maxLatency), n) // in range
	if o.Response != nil {
		_ = o.Response.RecordValues(min(max(response, 0), maxLatency), n)
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
	for k, n := range u.Retried {
		t.Retried[k] += n
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
		if !forCall { // else the call counts it
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

// age counts a call without reply, by its age in ns.
func (t *Tally) age(to **hdrhistogram.Histogram, ns int64) {
	if *to == nil {
		*to = NewHistogram()
	}
	_ = (*to).RecordValue(min(max(ns, 0), maxLatency)) // in range
}
