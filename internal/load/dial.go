//go:build linux

package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/session"
	"slowpath/internal/target"
)

// dialed is an attempt to fill a seat: a place for a connection, which outlives it.
type dialed struct {
	seat    int
	fd      int // -1 with err
	err     error
	opening session.Opening
	start   int64 // by the clock
}

// dial connects and logs in, and gives the socket.
func dial(ctx context.Context, t target.Target) (fd int, o session.Opening, err error) {
	s, o, err := session.Open(ctx, t, "slowpath-bench")
	if err != nil {
		return -1, o, err
	}
	fd, err = s.Detach().Detach()
	if err != nil {
		s.Close()
	}
	return fd, o, err
}

// connect opens all connections, some at a time, and deals them out to the workers.
func (r *run) connect(ctx context.Context) error {
	const atOnce = 64
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		turn  = make(chan struct{}, atOnce)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range r.Connections {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			start := r.Clock.Now()
			fd, opening, err := dial(ctx, r.Target)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil && ctx.Err() == nil {
					first = err
				}
				cancel()
				return
			}
			r.workers[i%len(r.workers)].deliver(dialed{seat: i / len(r.workers), fd: fd, opening: opening, start: start})
		})
	}
	wg.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// Pauses before a lost connection is tried again: random between half and whole, so that many do not come back at once, and longer each time.
const (
	firstPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// redial fills a seat again, after a pause that grows with the attempts that failed.
func (w *worker) redial(seat, attempt int) {
	pause := min(firstPause<<min(attempt, 10), mostPause)
	pause = pause/2 + rand.N(pause/2)
	w.r.dials.Go(func() {
		select {
		case <-time.After(pause):
		case <-w.r.dialing.Done():
			return
		}
		start := w.r.Clock.Now()
		ctx, cancel := context.WithTimeout(w.r.dialing, w.r.DialTimeout)
		defer cancel()
		fd, opening, err := dial(ctx, w.r.Target)
		if w.r.dialing.Err() != nil {
			if err == nil {
				unix.Close(fd)
			}
			return
		}
		w.deliver(dialed{seat: seat, fd: fd, err: err, opening: opening, start: start})
	})
}

// deliver hands a new connection, or the news that there is none, to the worker; any goroutine may call it.
func (w *worker) deliver(d dialed) {
	w.inboxMu.Lock()
	w.inbox = append(w.inbox, d)
	w.inboxMu.Unlock()
	w.wakeUp()
}

// admit takes new connections.
func (w *worker) admit() {
	w.inboxMu.Lock()
	arrived := w.inbox
	w.inbox = nil
	w.inboxMu.Unlock()
	for _, d := range arrived {
		for len(w.conns) <= d.seat {
			w.conns = append(w.conns, &conn{dead: true})
		}
		old := w.conns[d.seat]
		if d.err != nil {
			w.tally.Errors[errorKind(d.err)]++
			old.attempts++
			w.redial(d.seat, old.attempts)
			continue
		}
		c := newConn(d.fd, w.r.Pipeline)
		c.index = d.seat
		w.conns[d.seat] = c
		if w.connected[d.seat] {
			w.tally.Reconnected++
		}
		w.connected[d.seat] = true
		if err := w.add(d.fd, c.index, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP); err != nil {
			w.lost(c, err)
			continue
		}
		for range w.r.Pipeline {
			w.free(c)
		}
		w.flush(c)
	}
}
