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

// dialed is an attempt to open the connection with an index.
type dialed struct {
	index      int
	fd         int // -1 with err
	secure     *secure
	err        error
	opening    session.Opening
	start, end int64 // of the attempt, by the clock

	due        int64 // when the first calls on it were due; 0: when it is open
	forCall    bool  // it was opened for one call, which is in flight since due
	pauseEnded bool  // not an attempt: the pause after a failed one has ended
}

// dial connects and logs in.
func (r *run) dial(ctx context.Context, t target.Target, index int) dialed {
	d := dialed{index: index, fd: -1, start: r.Clock.Now()}
	s, opening, err := session.Open(ctx, t, clientName)
	d.opening, d.err = opening, err
	if err == nil && r.readOnly() {
		if _, d.err = s.Do(ctx, "READONLY"); d.err != nil { // a master accepts it too, and may become a replica
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

// clientName is the name in CLIENT LIST.
const clientName = "slowpath-bench"

func (d *dialed) took() time.Duration { return time.Duration(d.end - d.start) }

// close closes a connection that no worker took over.
func (d *dialed) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
}

// connect opens all connections, some at a time, and distributes them to the workers. Where they are opened after the
// start of the load it opens and closes one, so that errors of the target and the login show at once.
func (r *run) connect(ctx context.Context) error {
	if r.PerCall || r.ColdStart {
		ctx, cancel := context.WithTimeout(ctx, r.DialTimeout)
		defer cancel()
		d := r.dial(ctx, r.Target, 0)
		d.close()
		return d.err
	}
	specs := make([]connSpec, r.Connections)
	for i := range specs {
		specs[i] = connSpec{to: r.Target, worker: r.workers[i%len(r.workers)], index: i / len(r.workers)}
	}
	return r.openConns(ctx, specs)
}

// openConns opens connections, some at a time, and hands them to their workers. The error is that of the first one that
// is not optional.
func (r *run) openConns(ctx context.Context, specs []connSpec) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		first  error
		tokens = make(chan struct{}, maxConnecting)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range r.connectFast(ctx, specs) {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			d := r.dial(ctx, p.to, p.index)
			if d.err != nil && !p.optional {
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

// readOnly: replicas of a cluster serve reads after READONLY.
func (r *run) readOnly() bool { return r.Cluster && r.ReadFrom != Master }

// Pauses before a lost connection is opened again: random, 50 to 100 %, so that many do not come back at once, and
// longer each time.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

func pauseAfter(attempt int) time.Duration {
	pause := min(minPause<<min(attempt, 10), maxPause)
	return pause/2 + rand.N(pause/2)
}

// redial opens a connection again, after a pause that grows with the failed attempts.
func (w *worker) redial(index, attempt int) {
	w.dialAfter(pauseAfter(attempt), dialed{index: index})
}

// dialAfter makes one attempt in a goroutine, and delivers its outcome with due and forCall of d.
func (w *worker) dialAfter(pause time.Duration, d dialed) {
	w.r.dials.Go(func() {
		if !w.r.pause(pause) {
			return
		}
		ctx, cancel := context.WithTimeout(w.r.dialing, w.r.DialTimeout)
		defer cancel()
		got := w.r.dial(ctx, w.targetOf(d.index), d.index)
		if w.r.dialing.Err() != nil {
			got.close()
			return
		}
		got.due, got.forCall = d.due, d.forCall
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

// deliver hands the outcome of an attempt to the worker; any goroutine may call it.
func (w *worker) deliver(d dialed) {
	w.inboxMu.Lock()
	w.inbox = append(w.inbox, d)
	first := len(w.inbox) == 1
	w.inboxMu.Unlock()
	if first {
		w.wakeUp()
	}
}

// admit takes over new connections.
func (w *worker) admit() {
	w.inboxMu.Lock()
	arrived := w.inbox
	w.inbox = nil
	w.inboxMu.Unlock()
	for i := range arrived {
		d := &arrived[i]
		switch {
		case d.pauseEnded:
			w.connReady(w.conns[d.index])
		case d.err != nil:
			w.tally.dialed(&d.opening, d.took(), d.err, d.forCall)
			w.dialFailed(d)
		default:
			w.tally.dialed(&d.opening, d.took(), d.err, d.forCall)
			w.addConn(d)
		}
	}
}

// addConn takes over a connection and sends the first calls on it.
func (w *worker) addConn(d *dialed) {
	for len(w.conns) <= d.index {
		w.conns = append(w.conns, &conn{dead: true})
	}
	c := newConn(d.fd, w.r.Pipeline)
	c.index, c.secure = d.index, d.secure
	c.quota = w.r.quota()
	c.scan.keep = w.r.Verify
	w.conns[d.index] = c
	if w.connected[d.index] {
		w.tally.Reconnected++
	}
	w.connected[d.index] = true
	if err := w.add(d.fd, c.index, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP); err != nil {
		if d.forCall {
			w.inFlight--
			w.failed(1, errorKind(err))
		}
		w.lost(c, err)
		return
	}
	switch {
	case w.routing != nil:
		w.joinNode(c)
	case d.forCall:
		w.request(c, d.due)
	case d.due > 0 && w.arrivals == nil:
		for range w.r.Pipeline {
			if w.remaining != 0 && c.quota > 0 {
				w.send(c, d.due)
			}
		}
	default:
		for range w.r.Pipeline {
			w.connReady(c)
		}
	}
	w.flush(c)
}

// dialFailed tries again after a pause, or makes the connection ready for the next call.
func (w *worker) dialFailed(d *dialed) {
	for len(w.conns) <= d.index {
		w.conns = append(w.conns, &conn{dead: true})
	}
	old := w.conns[d.index]
	old.attempts++
	if w.routing != nil {
		w.routedDialFailed(d.index, old.attempts)
		return
	}
	if !d.forCall {
		w.redial(d.index, old.attempts)
		return
	}
	old.pop()
	w.inFlight--
	w.failed(1, errorKind(d.err))
	w.pauseConn(old)
}
