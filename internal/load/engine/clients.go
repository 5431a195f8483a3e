//go:build linux

package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/load/workload"
)

// clients is a load as an application with a pool makes it: goroutines that each take a connection, make a call, and
// hand it back. It is no event loop, since what it is to show is the wait for a connection and the price of the
// hand-over (docs/decisions/0012-connections-of-a-load.md).
type clients struct {
	r      *run
	pool   *pool
	places []*pooled
	books  []*book
	left   atomic.Int64 // calls that may still begin; only with Requests

	scheduleMu sync.Mutex
	arrivals   *arrivals // nil: closed loop

	sending, stop      context.Context // end when no more calls begin, and when those in flight are given up
	endSending, giveUp context.CancelFunc
	ended              int64 // when sending ended
	unsent             int64
	cpuNs              int64 // of this process, when the running second began
}

// runPool makes the load of Options.Pool.
func (r *run) runPool(ctx context.Context) (Result, error) {
	k := &clients{r: r}
	k.left.Store(r.Requests)
	k.stop, k.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	defer k.giveUp()
	if r.Open() {
		var err error
		if k.arrivals, err = newArrivals(r.Schedule, r.Arrivals, 0, 1, r.Seed); err != nil {
			return Result{}, err
		}
	}
	if err := k.connect(ctx); err != nil {
		return Result{}, err
	}
	defer k.drop()
	if r.Begin != nil {
		if err := r.Begin(ctx); err != nil {
			return Result{}, err
		}
	}
	r.start = r.Clock.Now()
	if r.OnStart != nil {
		r.OnStart(r.start)
	}
	k.cpuNs = cpuOfProcess()
	if r.Duration > 0 {
		k.sending, k.endSending = context.WithTimeout(ctx, r.Duration)
	} else {
		k.sending, k.endSending = context.WithCancel(ctx)
	}
	defer k.endSending()
	if err := k.work(); err != nil {
		return Result{}, err
	}
	res := Result{StartNs: r.start, EndNs: k.ended, Unsent: k.unsent}
	for _, b := range k.books {
		res.InFlight += b.inFlight
	}
	return res, nil
}

// connect makes the places of the pool, and connects them unless they are to begin cold; one is connected in any case,
// which tells what is wrong with the target or the login.
func (k *clients) connect(ctx context.Context) error {
	for i := range k.r.Threads {
		k.books = append(k.books, newBook(k.r, i))
	}
	for i := range k.r.Pool {
		p := &pooled{}
		k.places = append(k.places, p)
		if k.r.ColdStart && i > 0 {
			continue
		}
		d := k.r.dialPooled(ctx, p)
		if d.err != nil {
			k.drop()
			return d.err
		}
		if k.r.ColdStart {
			p.drop()
			p.connects = 0
			continue
		}
		k.books[0].dialed(nil, &d, false)
	}
	k.pool = newPool(slices.Clone(k.places))
	return nil
}

func (k *clients) drop() {
	for _, p := range k.places {
		p.drop()
	}
}

// work runs the clients to the end of the load.
func (k *clients) work() error {
	var wg sync.WaitGroup
	for i := range k.r.Workers {
		alarm, err := clock.NewAlarm(k.sending)
		if err != nil {
			k.endSending()
			wg.Wait()
			return err
		}
		c := &client{
			clients: k, stream: k.r.Workload.Stream(k.r.Seed, i, k.r.Workers), book: k.books[i%len(k.books)],
			alarm: alarm,
		}
		c.flight = c.book.open()
		wg.Go(c.run)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	k.watch(done)
	return nil
}

// watch tells the tallies each second, and gives up what is in flight when it was waited for long enough.
func (k *clients) watch(done chan struct{}) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	sending := k.sending.Done()
	var drained <-chan time.Time
	for {
		select {
		case <-second.C:
			k.roll(false)
		case <-sending:
			sending = nil
			k.leave()
			drained = time.After(k.r.Drain)
		case <-drained:
			k.giveUp()
			k.pool.end()
			for _, p := range k.places {
				p.interrupt()
			}
		case <-done:
			if sending != nil {
				k.leave()
			}
			k.roll(true)
			return
		}
	}
}

// leave ends sending, and counts what the schedule had due and nobody sent.
func (k *clients) leave() {
	k.scheduleMu.Lock()
	defer k.scheduleMu.Unlock()
	k.ended = k.r.Clock.Now()
	for _, b := range k.books {
		b.stop()
	}
	for k.arrivals != nil {
		at, more := k.arrivals.next()
		if !more || k.r.start+at >= k.ended {
			k.arrivals = &arrivals{}
			return
		}
		k.unsent++
		k.books[0].unsent(k.ended - k.r.start - at)
	}
}

// roll tells what was counted since the last time.
func (k *clients) roll(last bool) {
	now, cpu := k.r.Clock.Now(), cpuOfProcess()
	at := now
	if last {
		at = k.ended
	}
	for i, b := range k.books {
		t := b.take(int((now-k.r.start)/int64(time.Second)), now, last)
		t.EndNs = at - k.r.start
		if i == 0 {
			if last {
				k.r.subscribers.settle()
			}
			k.r.subscribers.tell(t)
			t.CPUNs = cpu - k.cpuNs
			for _, p := range k.places {
				if p.connected() {
					t.Connected++
				}
			}
		}
		if k.r.OnTally != nil {
			k.r.OnTally(t)
		}
		b.giveBack(t)
	}
	k.cpuNs = cpu
}

// client is one of Options.Workers: it makes one call after the other, as a thread of an application does.
type client struct {
	*clients
	stream *workload.Stream
	book   *book
	flight *bookedCall
	alarm  *clock.Alarm
}

// run makes calls until the load ends.
func (c *client) run() {
	defer c.alarm.Close()
	for c.sending.Err() == nil {
		due, more := c.next()
		if !more {
			return
		}
		if failures := c.call(due); failures > 0 && !c.rest(failures) {
			return
		}
	}
}

// next waits for when the next call is due; false when there is none.
func (c *client) next() (due int64, more bool) {
	if c.r.Requests > 0 && c.left.Add(-1) < 0 {
		return 0, false
	}
	now := c.r.Clock.Now()
	if !c.r.Open() {
		return now, true
	}
	c.scheduleMu.Lock()
	at, more := c.arrivals.next()
	c.scheduleMu.Unlock()
	due = c.r.start + at
	if !more || due <= now {
		return due, more
	}
	if !c.alarm.Sleep(time.Duration(due-now)) && c.r.Clock.Now() < due {
		return 0, false
	}
	c.book.late(c.r.Clock.Now() - due)
	return due, true
}

// rest is the pause after a place could not be connected.
func (c *client) rest(failures int) bool { return c.alarm.Sleep(pauseAfter(failures)) }

// call makes one call, and tells how often its place could not be connected.
func (c *client) call(due int64) (failures int) {
	c.book.begin(c.flight, due)
	place := c.pool.take()
	if place == nil {
		return 0 // the load has ended, and the call is left in flight
	}
	defer c.pool.handBack(place)
	taken := c.r.Clock.Now()
	if place.conn == nil && !c.connect(place) {
		return place.attempts
	}
	var q workload.Request
	c.stream.Due = due
	place.out, q = c.stream.Next(place.out[:0])
	c.book.sent(c.flight, taken, c.r.Clock.Now())
	a, err := place.call(c.r, c.stream, q)
	now := c.r.Clock.Now()
	switch {
	case err == nil:
		c.tellSlow(&q, now)
		c.book.replied(c.flight, q, &a, len(place.out), now)
	case c.stop.Err() != nil:
		place.drop()
	default:
		place.drop()
		c.book.lost(c.flight, err)
	}
	return 0
}

// connect connects a place for the call at hand, which fails if it cannot.
func (c *client) connect(place *pooled) bool {
	again := place.connects > 0
	d := c.r.dialPooled(c.stop, place)
	if d.err != nil && c.stop.Err() != nil {
		return false // the load has ended, and the call is left in flight
	}
	c.book.dialed(c.flight, &d, again)
	return d.err == nil
}
