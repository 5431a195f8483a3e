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

// clients is a load as of an application with a pool: goroutines that borrow a connection, make a call, and give it
// back. It is no event loop, since it shows the wait for a connection and the cost of passing it on
// (docs/decisions/0012-connections-of-a-load.md).
type clients struct {
	r       *run
	pool    *pool
	conns   []*pooledConn
	tallies []*clientTally
	left    atomic.Int64 // calls that may still begin; only with Requests

	scheduleMu sync.Mutex
	arrivals   *arrivals // nil: closed loop

	sending, stop      context.Context // end when no more calls begin, and when calls in flight are given up
	endSending, giveUp context.CancelFunc
	ended              int64 // when sending ended
	unsent             int64
	cpuNs              int64 // of this process, at the start of the current second
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
	if err := k.runClients(); err != nil {
		return Result{}, err
	}
	res := Result{StartNs: r.start, EndNs: k.ended, Unsent: k.unsent}
	for _, b := range k.tallies {
		res.InFlight += b.inFlight
	}
	return res, nil
}

// connect opens the connections of the pool. With ColdStart it opens one and closes it again, which shows errors of the
// target and the login.
func (k *clients) connect(ctx context.Context) error {
	for i := range k.r.Threads {
		k.tallies = append(k.tallies, newClientTally(k.r, i))
	}
	for i := range k.r.Pool {
		p := &pooledConn{}
		k.conns = append(k.conns, p)
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
		k.tallies[0].dialed(nil, &d, false)
	}
	k.pool = newPool(slices.Clone(k.conns))
	return nil
}

func (k *clients) drop() {
	for _, p := range k.conns {
		p.drop()
	}
}

// runClients runs the clients until the end of the load.
func (k *clients) runClients() error {
	var wg sync.WaitGroup
	for i := range k.r.Workers {
		alarm, err := clock.NewAlarm(k.sending)
		if err != nil {
			k.endSending()
			wg.Wait()
			return err
		}
		c := &client{
			clients: k, stream: k.r.Workload.Stream(k.r.Seed, i, k.r.Workers), counts: k.tallies[i%len(k.tallies)],
			alarm: alarm,
		}
		c.current = c.counts.add()
		wg.Go(c.run)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	k.closeSeconds(done)
	return nil
}

// closeSeconds passes on the tallies each second, and gives up the calls in flight when Drain is over.
func (k *clients) closeSeconds(done chan struct{}) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	sending := k.sending.Done()
	var drained <-chan time.Time
	for {
		select {
		case <-second.C:
			k.closeSecond(false)
		case <-sending:
			sending = nil
			k.endSendingNow()
			drained = time.After(k.r.Drain)
		case <-drained:
			k.giveUp()
			k.pool.close()
			for _, p := range k.conns {
				p.interrupt()
			}
		case <-done:
			if sending != nil {
				k.endSendingNow()
			}
			k.closeSecond(true)
			return
		}
	}
}

// endSendingNow ends sending, and counts the calls that were due and never sent.
func (k *clients) endSendingNow() {
	k.scheduleMu.Lock()
	defer k.scheduleMu.Unlock()
	k.ended = k.r.Clock.Now()
	for _, b := range k.tallies {
		b.stop()
	}
	for k.arrivals != nil {
		at, more := k.arrivals.next()
		if !more || k.r.start+at >= k.ended {
			k.arrivals = &arrivals{}
			return
		}
		k.unsent++
		k.tallies[0].unsent(k.ended - k.r.start - at)
	}
}

// closeSecond passes on the tallies.
func (k *clients) closeSecond(last bool) {
	now, cpu := k.r.Clock.Now(), cpuOfProcess()
	at := now
	if last {
		at = k.ended
	}
	for i, b := range k.tallies {
		t := b.closeSecond(int((now-k.r.start)/int64(time.Second)), now, last)
		t.EndNs = at - k.r.start
		if i == 0 {
			if last {
				k.r.subscribers.waitForMessages()
			}
			k.r.subscribers.addTo(t)
			t.CPUNs = cpu - k.cpuNs
			for _, p := range k.conns {
				if p.connected() {
					t.Connected++
				}
			}
		}
		if k.r.OnTally != nil {
			k.r.OnTally(t)
		}
		b.recycle(t)
	}
	k.cpuNs = cpu
}

// client is one of Options.Workers: it makes one call after the other, as a thread of an application does.
type client struct {
	*clients
	stream  *workload.Stream
	counts  *clientTally
	current *clientCall
	alarm   *clock.Alarm
}

// run makes calls until the load ends.
func (c *client) run() {
	defer c.alarm.Close()
	for c.sending.Err() == nil {
		due, more := c.next()
		if !more {
			return
		}
		if failures := c.call(due); failures > 0 && !c.pause(failures) {
			return
		}
	}
}

// next waits until the next call is due; false when there is none.
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
	c.counts.late(c.r.Clock.Now() - due)
	return due, true
}

// pause waits after a connection could not be opened.
func (c *client) pause(failures int) bool { return c.alarm.Sleep(pauseAfter(failures)) }

// call makes one call, and gives the number of failed attempts to connect.
func (c *client) call(due int64) (failures int) {
	c.counts.begin(c.current, due)
	conn := c.pool.borrow()
	if conn == nil {
		return 0 // the load has ended, and the call is left in flight
	}
	defer c.pool.giveBack(conn)
	taken := c.r.Clock.Now()
	if conn.conn == nil && !c.connect(conn) {
		return conn.attempts
	}
	var q workload.Request
	c.stream.Due = due
	conn.out, q = c.stream.Next(conn.out[:0])
	c.counts.sent(c.current, taken, c.r.Clock.Now())
	a, err := conn.call(c.r, c.stream, q)
	now := c.r.Clock.Now()
	switch {
	case err == nil:
		c.reportSlow(&q, now)
		c.counts.replied(c.current, q, &a, len(conn.out), now)
	case c.stop.Err() != nil:
		conn.drop()
	default:
		conn.drop()
		c.counts.lost(c.current, err)
	}
	return 0
}

// connect opens a connection for the current call, which fails if it cannot.
func (c *client) connect(conn *pooledConn) bool {
	again := conn.connects > 0
	d := c.r.dialPooled(c.stop, conn)
	if d.err != nil && c.stop.Err() != nil {
		return false // the load has ended, and the call is left in flight
	}
	c.counts.dialed(c.current, &d, again)
	return d.err == nil
}
