//go:build linux

package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// worker is a thread with its share of the connections and of the calls.
type worker struct {
	poller
	r         *run
	index     int
	stream    *workload.Stream
	ops       []workload.Op
	conns     []*conn      // by index; a connection that is opened again keeps its index
	connected map[int]bool // by index: it was open before
	unread    []*conn      // that had more to read than one turn allows
	drafts    [][]byte     // empty buffers for requests
	buf       []byte       // for reads; an incomplete reply is moved to the connection's carry

	arrivals *arrivals // nil: closed loop
	due      int64     // next arrival, by the clock
	hasDue   bool      // there is a next arrival
	idle     queue     // open loop: one entry per call that has room now
	routing  *routing  // nil: one target
	replayer *replayer // nil: calls are drawn, not replayed

	wakeUpDelay     wakeUpDelay
	now             int64 // after the last read or wait
	polledEmpty     bool  // the last wait did not sleep and found nothing
	second          int64 // end of the current one
	checkTimeoutsAt int64 // when calls are checked for timeouts
	tally           *Tally
	spare           chan *Tally // empty ones
	meter           *meter
	remaining       int64 // calls that may still be sent; negative: no limit
	inFlight        int64
	unsent          int64
	ended           int64 // when sending ended

	inboxMu  sync.Mutex
	inbox    []dialed
	stopping atomic.Bool
}

const bufferBytes = 256 << 10

func newWorker(r *run, index int) (*worker, error) {
	w := &worker{
		r: r, index: index, ops: r.Ops(), buf: make([]byte, bufferBytes), remaining: -1,
		connected: map[int]bool{},
	}
	w.makeTallies()
	if r.Replay != nil {
		w.initReplay(r.replayStreams)
		return w, w.open()
	}
	w.stream = r.Workload.Stream(r.Seed, index, r.Threads)
	if !r.routed() {
		w.stream.OmitSlots()
	}
	if r.Requests > 0 {
		n := int64(r.Threads)
		w.remaining = r.Requests / n
		if int64(index) < r.Requests%n {
			w.remaining++
		}
	}
	if len(r.Schedule) > 0 {
		var err error
		if w.arrivals, err = newArrivals(r.Schedule, r.Arrivals, index, r.Threads, r.Seed); err != nil {
			return nil, err
		}
	}
	return w, w.open()
}

func (w *worker) close() {
	for _, c := range w.conns {
		if !c.dead && !c.unconnected {
			unix.Close(c.fd)
		}
	}
	for i := range w.inbox {
		w.inbox[i].close()
	}
	w.poller.close()
}

// stop ends the load; any thread may call it.
func (w *worker) stop() {
	w.stopping.Store(true)
	w.wakeUp()
}

// run is the event loop.
func (w *worker) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Timeouts are exact to a microsecond instead of 50 (prctl(2)).
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	w.beginTally()
	defer w.meter.close()
	w.begin()
	for !w.finished() {
		if c := w.blockingConn(); c != nil {
			w.receiveBlocking(c)
		} else if err := w.iterate(); err != nil {
			return err
		}
		if w.now >= w.checkTimeoutsAt {
			w.checkTimeouts()
		}
		if w.now >= w.second && !w.finished() { // the last second ends with the drain
			w.closeSecond()
		}
	}
	w.ended = w.now
	w.drain()
	return nil
}

// iterate is one event-loop iteration: it waits for events, and handles them and what the schedule has due.
func (w *worker) iterate() error {
	timeout := w.timeout()
	n, err := w.wait(timeout)
	if err != nil {
		return err
	}
	before := w.now
	w.now = w.r.Clock.Now()
	w.tally.Waits++
	wasEmpty := w.polledEmpty
	w.polledEmpty = n == 0 && timeout <= 0
	switch {
	case w.polledEmpty && wasEmpty:
		w.tally.SpunNs += min(w.now-before, maxPoll)
	case n == 0 && timeout > 0 && w.wakeUpDelay.due > 0:
		w.wakeUpDelay.record(w.now)
	}
	scheduled := w.arrivals != nil || w.replayer != nil
	for i := range n {
		w.handle(&w.events[i])
		if scheduled && w.routing == nil {
			w.dispatch() // a call that became due does not wait for the other events
		}
	}
	w.dispatch()
	return nil
}

// begin takes over the first connections and sends the first calls.
func (w *worker) begin() {
	w.checkTimeoutsAt = w.nextTimeoutCheck()
	if w.arrivals != nil {
		w.advance()
	}
	if w.replayer != nil {
		w.replayer.begin(w.r.start)
	}
	if w.routing != nil {
		w.beginRouted()
		return
	}
	if w.r.PerCall || w.r.ColdStart {
		w.addUnconnected()
	}
	w.admit()
}

// finished: nothing more is to be sent.
func (w *worker) finished() bool {
	return w.stopping.Load() || w.r.Duration > 0 && w.now >= w.r.start+int64(w.r.Duration) || w.remaining == 0 &&
		w.inFlight == 0 ||
		w.arrivals != nil && !w.hasDue && w.inFlight == 0 && w.r.Duration == 0
}

// timeout is how long a worker sleeps without events.
func (w *worker) timeout() time.Duration {
	if w.r.BusyPoll {
		return 0
	}
	until := min(w.second, w.checkTimeoutsAt)
	if w.r.Duration > 0 {
		until = min(until, w.r.start+int64(w.r.Duration))
	}
	housekeeping := until
	if w.replayer != nil {
		until = w.nextReplayed(until)
	}
	switch {
	case w.routing != nil:
		until = w.nextRouted(until)
	case w.arrivals != nil && w.hasDue && !w.idle.empty():
		until = min(until, w.due)
	}
	if until <= w.now {
		w.now = w.r.Clock.Now()
	}
	w.wakeUpDelay.due = 0
	if until < housekeeping {
		w.wakeUpDelay.due = until
		if until-w.now < w.wakeUpDelay.estimate() {
			return 0
		}
	}
	return time.Duration(until - w.now)
}

func (w *worker) handle(e *unix.EpollEvent) {
	if e.Fd == wakeIndex {
		w.drainWake()
		w.admit()
		w.receiveUnread()
		return
	}
	c := w.conns[e.Fd]
	// an event of a closed socket that a forked process still held open
	if c.dead || c.unconnected {
		return
	}
	if e.Events&unix.EPOLLOUT != 0 && c.full {
		c.full = false
		w.flush(c)
	}
	if e.Events&^unix.EPOLLOUT != 0 {
		c.ending = c.ending || e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		w.receive(c)
	}
}
