//go:build linux

package engine

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// dialed is an attempt to fill a seat: a place for a connection, which outlives it.
type dialed struct {
	seat       int
	fd         int // -1 with err
	secure     *secure
	err        error
	opening    session.Opening
	start, end int64 // of the attempt, by the clock

	due    int64 // when the first calls on it were due; 0: when it stands
	call   bool  // it was dialed for one call, which is in flight since due
	rested bool  // no attempt, but the end of the pause after one that failed
}

// dial connects and logs in, and gives the socket.
func (r *run) dial(ctx context.Context, t target.Target, seat int) dialed {
	d := dialed{seat: seat, fd: -1, start: r.Clock.Now()}
	s, opening, err := session.Open(ctx, t, clientName)
	d.opening, d.err = opening, err
	if err == nil && r.readOnly() {
		if _, d.err = s.Do(ctx, "READONLY"); d.err != nil { // a master takes it too, and may become a replica
			s.Close()
		}
	}
	if d.err == nil {
		var wire *wire
		var stream net.Conn
		d.fd, stream, d.err = s.Detach().Detach(func(fd int) net.Conn { wire = newWire(fd); return wire })
		if d.err != nil {
			s.Close()
		} else if stream != nil {
			d.secure = &secure{stream, wire}
		}
	}
	d.end = r.Clock.Now()
	return d
}

// clientName is what CLIENT LIST shows.
const clientName = "slowpath-bench"

func (d *dialed) took() time.Duration { return time.Duration(d.end - d.start) }

// close gives up a connection that nobody took.
func (d *dialed) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
}

// connect opens all connections, some at a time, and deals them out to the workers. Where they are opened in the course
// of the load it opens one, so that what is wrong with the target or the login is told at once.
func (r *run) connect(ctx context.Context) error {
	if r.PerCall || r.ColdStart {
		ctx, cancel := context.WithTimeout(ctx, r.DialTimeout)
		defer cancel()
		d := r.dial(ctx, r.Target, 0)
		d.close()
		return d.err
	}
	places := make([]place, r.Connections)
	for i := range places {
		places[i] = place{to: r.Target, worker: r.workers[i%len(r.workers)], seat: i / len(r.workers)}
	}
	return r.fill(ctx, places)
}

// fill opens connections, some at a time, and deals them out. The error is that of the first which had to stand.
func (r *run) fill(ctx context.Context, places []place) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		turn  = make(chan struct{}, atOnce)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range r.quickly(ctx, places) {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			d := r.dial(ctx, p.to, p.seat)
			if d.err != nil && !p.may {
				mu.Lock()
				defer mu.Unlock()
				if first == nil && ctx.Err() == nil {
					first = d.err
				}
				cancel()
				return
			}
			p.worker.deliver(d)
		})
	}
	wg.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// readOnly tells whether replicas of a cluster are asked to serve reads.
func (r *run) readOnly() bool { return r.Cluster && r.ReadFrom != Master }

// Pauses before a lost connection is tried again: random between half and whole, so that many do not come back at once,
// and longer each time.
const (
	firstPause = 20 * time.Millisecond
	mostPause  = time.Second
)

func pauseAfter(attempt int) time.Duration {
	pause := min(firstPause<<min(attempt, 10), mostPause)
	return pause/2 + rand.N(pause/2)
}

// redial fills a seat again, after a pause that grows with the attempts that failed.
func (w *worker) redial(seat, attempt int) {
	w.dialAfter(pauseAfter(attempt), dialed{seat: seat})
}

// dialAfter makes one attempt in a goroutine of its own, and delivers what came of it with the due and call of d.
func (w *worker) dialAfter(pause time.Duration, d dialed) {
	w.r.dials.Go(func() {
		if !w.r.pause(pause) {
			return
		}
		ctx, cancel := context.WithTimeout(w.r.dialing, w.r.DialTimeout)
		defer cancel()
		got := w.r.dial(ctx, w.seatTarget(d.seat), d.seat)
		if w.r.dialing.Err() != nil {
			got.close()
			return
		}
		got.due, got.call = d.due, d.call
		w.deliver(got)
	})
}

// pause waits; false when the load has ended.
func (r *run) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.dialing.Done():
		return false
	}
}

// deliver hands a new connection, or the news that there is none, to the worker; any goroutine may call it.
func (w *worker) deliver(d dialed) {
	w.inboxMu.Lock()
	w.inbox = append(w.inbox, d)
	first := len(w.inbox) == 1
	w.inboxMu.Unlock()
	if first {
		w.wakeUp()
	}
}

// admit takes new connections.
func (w *worker) admit() {
	w.inboxMu.Lock()
	arrived := w.inbox
	w.inbox = nil
	w.inboxMu.Unlock()
	for i := range arrived {
		d := &arrived[i]
		switch {
		case d.rested:
			w.free(w.conns[d.seat])
		case d.err != nil:
			w.tally.dialed(&d.opening, d.took(), d.err, d.call)
			w.notDialed(d)
		default:
			w.tally.dialed(&d.opening, d.took(), d.err, d.call)
			w.seated(d)
		}
	}
}

// seated takes a connection and sends the first calls on it.
func (w *worker) seated(d *dialed) {
	for len(w.conns) <= d.seat {
		w.conns = append(w.conns, &conn{dead: true})
	}
	c := newConn(d.fd, w.r.Pipeline)
	c.index, c.secure = d.seat, d.secure
	c.quota = w.r.quota()
	c.scan.keep = w.r.Verify
	w.conns[d.seat] = c
	if w.connected[d.seat] {
		w.tally.Reconnected++
	}
	w.connected[d.seat] = true
	if err := w.add(d.fd, c.index, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP); err != nil {
		if d.call {
			w.inFlight--
			w.failed(1, errorKind(err))
		}
		w.lost(c, err)
		return
	}
	switch {
	case w.routing != nil:
		w.join(c)
	case d.call:
		w.request(c, d.due)
	case d.due > 0 && w.arrivals == nil:
		for range w.r.Pipeline {
			if w.left != 0 && c.quota > 0 {
				w.send(c, d.due)
			}
		}
	default:
		for range w.r.Pipeline {
			w.free(c)
		}
	}
	w.flush(c)
}

// notDialed tries again after a pause, or frees the seat for the next call.
func (w *worker) notDialed(d *dialed) {
	for len(w.conns) <= d.seat {
		w.conns = append(w.conns, &conn{dead: true})
	}
	old := w.conns[d.seat]
	old.attempts++
	if w.routing != nil {
		w.notSeated(d.seat, old.attempts)
		return
	}
	if !d.call {
		w.redial(d.seat, old.attempts)
		return
	}
	old.pop()
	w.inFlight--
	w.failed(1, errorKind(d.err))
	w.rest(old)
}
