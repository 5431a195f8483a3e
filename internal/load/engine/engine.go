//go:build linux

// Package engine is the load generator: it sends calls over many connections, in a closed loop or by a schedule, and
// counts the replies and their times. Each worker is a thread of its own with an edge-triggered epoll: per batch of
// replies one read, one time stamp, one write; no allocation and no lock per call.
package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// Options of a load. Connections, Pipeline and Threads are at least 1.
type Options struct {
	Target   target.Target
	Workload *workload.Workload
	// Replay is sent instead of a workload, which is nil then. The load ends when all of it was sent; Requests limits
	// it to its first requests.
	Replay *workload.Replay
	// ReplaySpeed: 1 is the speed of the log, 2 twice as fast; 0: as fast as connections and pipeline allow.
	ReplaySpeed float64
	Clock       *clock.Real
	Connections int
	Pipeline    int // calls in flight on a connection
	// send Pipeline calls at once when the batch before has all replies; else keep Pipeline calls in flight
	Batch    bool
	Threads  int
	BusyPoll bool // spin instead of sleeping

	// PerCall connects for each call, and closes after its reply; Connections is then the most calls in flight, and
	// Pipeline 1.
	PerCall bool
	// ReconnectEvery closes a connection after about this number of calls and opens it again; 0: never.
	ReconnectEvery int
	// ColdStart begins the load before the connections are open, so that the first calls wait for them.
	ColdStart bool
	// Timeout fails calls without a reply this long after they were sent, and closes their connection; 0: none, so that
	// the slowest calls have a latency.
	Timeout time.Duration
	// Pool is the number of connections that Workers share: each call borrows one. 0: no pool.
	Pool, Workers int
	// Subscribers are connections that subscribe to what the workload publishes.
	Subscribers int
	// Verify compares the replies of ops that are Checked with what the workload wrote. It makes the load slower.
	Verify bool

	// Schedule makes an open loop: calls are due whether others have a reply or not. Empty: a closed loop, the next
	// call on a connection is due when one has its reply.
	Schedule []Stretch
	Arrivals string // Uniform or Poisson

	Duration time.Duration // 0: no limit
	Requests int64         // 0: no limit
	Drain    time.Duration // how long to wait for calls in flight at the end; 0: DefaultDrain
	// DialTimeout bounds each attempt to connect; 0: DefaultDialTimeout.
	DialTimeout time.Duration
	Seed        uint64

	// Cluster routes each call to the node of its slot; Target is any node. A Target with Sentinel is routed to the
	// current master.
	Cluster bool
	// the nodes that serve reads: Master (also ""), Replica or Any. Without Cluster the replicas are those of Target
	ReadFrom string

	// OnStart, if set, is called when the load begins, with the time of Clock: the connections are open, no call is
	// sent yet.
	OnStart func(startNs int64)
	// OnConnected, if set, is called with the descriptors of the first connections, before Begin; not for a Pool.
	OnConnected func(fds []int)
	// Begin, if set, is called when the connections are open; the load begins when it returns, and its error ends it.
	Begin func(context.Context) error
	// OnSlow, if set, is called for calls that took at least SlowFrom from their intended time, on the worker's thread:
	// it must not block.
	OnSlow func(Slow)
	// SlowFrom may be changed while the load runs; in ns. nil: none is slow.
	SlowFrom *atomic.Int64
	// OnTally, if set, is called with what a worker counted in a second, which is valid until the call returns. A
	// goroutine that is no worker's calls it.
	OnTally func(*Tally)
}

// Defaults of Options.
const (
	DefaultDrain       = time.Second
	DefaultDialTimeout = 5 * time.Second
)

// Result is the result of a load, without its tallies.
type Result struct {
	StartNs, EndNs int64 // by Options.Clock; the end is that of sending
	InFlight       int64 // calls that had no reply when the load ended
	Unsent         int64 // calls of the schedule that were due and were not sent
}

// Open: the load follows a schedule, or the times of a log.
func (o *Options) Open() bool { return len(o.Schedule) > 0 || o.Paced() }

// Run makes the load until its time or number of calls is reached, or ctx ends; none of them is an error. An error is
// that of the first connections: later ones are counted, and tried again.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	o.Threads = min(max(o.Threads, 1), o.Connections)
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.SlowFrom == nil || o.OnSlow == nil {
		o.SlowFrom = new(atomic.Int64)
		o.SlowFrom.Store(math.MaxInt64)
	}
	if runtime.GOMAXPROCS(0) < o.Threads+1 {
		// each worker occupies one of the scheduler's processors
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.Threads + 1))
	}
	r := &run{Options: o}
	if err := r.subscribe(ctx); err != nil {
		return Result{}, err
	}
	defer r.subscribers.close()
	if o.Pool > 0 {
		return r.runPool(ctx)
	}
	// Dials outlive ctx: a call that waits for one is in flight, and is waited for.
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.dialing = dialing
	if r.Replay != nil {
		r.replayStreams = r.Replay.Streams(r.Connections, r.Requests, r.ReplaySpeed)
	}
	for i := range o.Threads {
		w, err := newWorker(r, i)
		if err != nil {
			r.close()
			return Result{}, err
		}
		r.workers = append(r.workers, w)
	}
	defer func() {
		cancel() // of the dials
		r.close()
	}()
	connect := r.connect
	if r.routed() {
		connect = r.connectRouted
	}
	if err := connect(ctx); err != nil {
		return Result{}, err
	}
	return r.run(ctx)
}

// run is the state of a load.
type run struct {
	Options
	workers       []*worker
	tallies       chan *Tally // full ones, for OnTally
	dialing       context.Context
	dials         sync.WaitGroup
	start         int64                    // by the clock
	replayStreams []*workload.ReplayStream // of Replay, by connection
	router        *router                  // nil: one target, no routing

	subscribers  *subscribers   // nil: none
	otherWorkers sync.WaitGroup // all but the first, which counts what subscribers received
}

func (r *run) close() {
	r.dials.Wait()
	for _, w := range r.workers {
		w.close()
	}
}

// connectedFDs are the descriptors of the connections in the inboxes of the workers.
func (r *run) connectedFDs() (fds []int) {
	for _, w := range r.workers {
		w.inboxMu.Lock()
		for i := range w.inbox {
			if w.inbox[i].fd >= 0 {
				fds = append(fds, w.inbox[i].fd)
			}
		}
		w.inboxMu.Unlock()
	}
	return fds
}

func (r *run) run(ctx context.Context) (Result, error) {
	if r.OnConnected != nil {
		r.OnConnected(r.connectedFDs())
	}
	if r.Begin != nil {
		if err := r.Begin(ctx); err != nil {
			return Result{}, err
		}
	}
	r.start = r.Clock.Now()
	passed := r.passTallies()
	var wg sync.WaitGroup
	errs := make([]error, len(r.workers))
	r.otherWorkers.Add(len(r.workers) - 1) // before the first worker can end
	for i, w := range r.workers {
		wg.Go(func() {
			errs[i] = w.run()
			if i > 0 {
				r.otherWorkers.Done()
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			for _, w := range r.workers {
				w.stop()
			}
		case <-ended:
		}
	}()
	wg.Wait()
	close(ended)
	close(r.tallies)
	<-passed
	res := Result{StartNs: r.start}
	for _, w := range r.workers {
		res.EndNs = max(res.EndNs, w.ended)
		res.InFlight += w.inFlight
		res.Unsent += w.unsent
	}
	if err := errors.Join(errs...); err != nil {
		return res, fmt.Errorf("the load generator: %w", err)
	}
	return res, nil
}
