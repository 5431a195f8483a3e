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

// worker is a thread with its share of the connections and of the load.
type worker struct {
	poller
	r         *run
	index     int
	stream    *workload.Stream
	ops       []workload.Op
	conns     []*conn      // by seat
	connected map[int]bool // seats that had a connection before
	drafts    [][]byte     // empty buffers for requests
	buf       []byte       // read into; what is left of it goes to the connection's carry

	arrivals *arrivals // nil: closed loop
	due      int64     // next arrival, by the clock
	more     bool      // there is a next one
	idle     queue     // open loop: one entry for each call that could be sent now
	routing  *routing  // nil: all calls go to one target
	player   *player   // nil: calls are drawn; else those of a log

	waking   waking
	now      int64 // after the last read or wait
	looked   bool  // the last wait did not sleep, and nothing had come
	second   int64 // end of the running one
	sweepAt  int64 // when calls that wait for too long are looked for
	tally    *Tally
	spare    chan *Tally // empty ones
	meter    *meter
	left     int64 // calls that may still be sent; negative: any number
	inFlight int64
	unsent   int64
	ended    int64 // when sending ended

	inboxMu  sync.Mutex
	inbox    []dialed
	stopping atomic.Bool
}

const bufferBytes = 256 << 10

func newWorker(r *run, index int) (*worker, error) {
	w := &worker{r: r, index: index, ops: r.Ops(), buf: make([]byte, bufferBytes), left: -1, connected: map[int]bool{}}
	w.makeTallies()
	if r.Replay != nil {
		w.replays(r.parts)
		return w, w.open()
	}
	w.stream = r.Workload.Stream(r.Seed, index, r.Threads)
	if !r.routed() {
		w.stream.LeaveSlots()
	}
	if r.Requests > 0 {
		n := int64(r.Threads)
		w.left = r.Requests / n
		if int64(index) < r.Requests%n {
			w.left++
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
		if !c.dead && !c.away {
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
		if c := w.only(); c != nil {
			w.receiveAsleep(c)
		} else if err := w.turn(); err != nil {
			return err
		}
		if w.now >= w.sweepAt {
			w.sweep()
		}
		if w.now >= w.second && !w.finished() { // else the last second goes with what comes back late
			w.roll()
		}
	}
	w.ended = w.now
	w.drain()
	return nil
}

// turn waits for events and does what they and the schedule ask for.
func (w *worker) turn() error {
	timeout := w.timeout()
	n, err := w.wait(timeout)
	if err != nil {
		return err
	}
	before := w.now
	w.now = w.r.Clock.Now()
	w.tally.Waits++
	again := w.looked
	w.looked = n == 0 && timeout <= 0
	switch {
	case w.looked && again:
		w.tally.SpunNs += min(w.now-before, longestLook)
	case n == 0 && timeout > 0 && w.waking.up > 0:
		w.waking.slept(w.now)
	}
	scheduled := w.arrivals != nil || w.player != nil
	for i := range n {
		w.handle(&w.events[i])
		if scheduled && w.routing == nil {
			w.dispatch() // what has become due meanwhile does not wait for the other events
		}
	}
	w.dispatch()
	return nil
}

// begin takes the first connections and sends the first calls.
func (w *worker) begin() {
	w.sweepAt = w.nextSweep()
	if w.arrivals != nil {
		w.advance()
	}
	if w.player != nil {
		w.player.begin(w.r.start)
	}
	if w.routing != nil {
		w.beginRouted()
		return
	}
	if w.r.PerCall || w.r.ColdStart {
		w.sit()
	}
	w.admit()
}

// finished tells whether nothing more is to be sent.
func (w *worker) finished() bool {
	return w.stopping.Load() || w.r.Duration > 0 && w.now >= w.r.start+int64(w.r.Duration) || w.left == 0 &&
		w.inFlight == 0 ||
		w.arrivals != nil && !w.more && w.inFlight == 0 && w.r.Duration == 0
}

// timeout is how long there is nothing to do unless something comes.
func (w *worker) timeout() time.Duration {
	if w.r.BusyPoll {
		return 0
	}
	until := min(w.second, w.sweepAt)
	if w.r.Duration > 0 {
		until = min(until, w.r.start+int64(w.r.Duration))
	}
	others := until
	if w.player != nil {
		until = w.nextPlayed(until)
	}
	switch {
	case w.routing != nil:
		until = w.nextRouted(until)
	case w.arrivals != nil && w.more && !w.idle.empty():
		until = min(until, w.due)
	}
	if until <= w.now {
		w.now = w.r.Clock.Now()
	}
	w.waking.up = 0
	if until < others {
		w.waking.up = until
		if until-w.now < w.waking.takes() {
			return 0
		}
	}
	return time.Duration(until - w.now)
}

func (w *worker) handle(e *unix.EpollEvent) {
	if e.Fd == wakeIndex {
		w.drainWake()
		w.admit()
		return
	}
	c := w.conns[e.Fd]
	// of a socket that was closed, and that a process which was forked meanwhile held for a moment longer
	if c.dead || c.away {
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
