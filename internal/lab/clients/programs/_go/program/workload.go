package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"lab/protocol"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// client is a library with its connections.
type client interface {
	worker() caller
	pool() protocol.Pool // called at the end; also closes the client
}

// caller makes the calls of one worker.
type caller interface {
	// call returns the reply, or "" if it is not a string. A missing key is not an error.
	call(args []any) (string, error)
}

// workload is what is done with one opening of the library.
type workload struct {
	protocol.Options
	*counts
	commands []protocol.Command // each as often as its weight
	lib      client

	busy   sync.RWMutex // read-locked by each operation
	closed bool         // the library is closed, or about to be: another workload follows
}

// counts are those of the whole program.
type counts struct {
	dials    atomic.Int64
	borrowed atomic.Int64
	ready    sync.Once
	lock     sync.Mutex // of the application's own cache
	looked   int        // how often workers have looked into that
	tally    *protocol.Tally
	slices   *protocol.Slices
}

// program is the first workload, and the one that runs now.
type program struct {
	*workload
	now atomic.Pointer[workload]
}

// follow reads further lines, until standard input ends. Each is options from then on.
func (p *program) follow(in *bufio.Reader) {
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		next, err := read(in, p.counts)
		if err == nil {
			next.lib, err = open(next)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		before := p.now.Swap(next)
		go func() {
			before.busy.Lock() // when its operations have ended
			before.closed = true
			before.busy.Unlock()
			before.lib.pool() // closes the library
		}()
	}
}

// work runs the workers until the context ends, and waits for them for a second at most: a library without a timeout
// may wait for ever.
func (p *program) work(ctx context.Context) {
	var wg sync.WaitGroup
	for id := range p.Workers {
		wg.Go(func() { p.worker(ctx, id) })
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// worker makes operations at its share of the rate. A worker that is late does not catch up with a burst: it makes the
// last operation that is due, and misses those before it.
func (p *program) worker(ctx context.Context, id int) {
	gap := time.Duration(0)
	if p.Rate > 0 {
		gap = time.Duration(float64(p.Workers) / p.Rate * float64(time.Second))
	}
	next := time.Now().Add(gap * time.Duration(id) / time.Duration(p.Workers))
	waits, mine := p.slices.Worker(), &turn{}
	defer mine.end()
	for sleep(ctx, time.Until(next)) {
		waits.Due(next)
		p.look()
		if mine.operation(p) == nil {
			waits.Succeeded(time.Now())
		}
		step := gap
		if p.Random {
			step = time.Duration(rand.ExpFloat64() * float64(gap))
		}
		next = next.Add(step)
		for gap > 0 && time.Since(next) > gap {
			waits.Due(next)
			next = next.Add(gap)
		}
		if gap == 0 {
			next = time.Now()
		}
	}
}

// look is what a worker does under the lock of the application, if it has one.
func (p *program) look() {
	if p.now.Load().LockFor > 0 {
		p.lock.Lock()
		p.looked++
		p.lock.Unlock()
	}
}

// holdLock takes the lock again and again, as one that fills the cache from another service and waits for that.
func (p *program) holdLock(ctx context.Context) {
	const poll = 20 * time.Millisecond // other options may come
	for {
		w := p.now.Load()
		if w.LockFor <= 0 {
			if !sleep(ctx, poll) {
				return
			}
			continue
		}
		if !sleep(ctx, w.LockEvery) {
			return
		}
		p.lock.Lock()
		sleep(ctx, time.Duration((0.5+rand.Float64())*float64(w.LockFor)))
		p.lock.Unlock()
	}
}

// turn is what one worker has of the workload that runs.
type turn struct {
	of     *workload
	caller caller
}

// operation makes one operation of the workload that runs now: the calls of a chain. Its error is that of the first
// call that fails.
func (t *turn) operation(p *program) (failed error) {
	w := p.now.Load()
	for w.busy.RLock(); w.closed; w.busy.RLock() {
		w.busy.RUnlock()
		w = p.now.Load()
	}
	defer w.busy.RUnlock()
	if w != t.of {
		t.end()
		t.of, t.caller = w, w.lib.worker()
	}
	for range max(w.Chain, 1) {
		reply, err := w.call(t.caller)
		w.decode(reply)
		if err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// end closes the client that the worker has of its own, if any.
func (t *turn) end() {
	if c, ok := t.caller.(interface{ closeOwn() }); ok {
		c.closeOwn()
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// call makes one call of the mix and counts it.
func (w *workload) call(c caller) (string, error) {
	args := w.command()
	start := time.Now()
	reply, err := c.call(args)
	w.tally.Add(start, err)
	if err == nil && w.Listen == "" {
		w.ready.Do(func() { fmt.Fprintln(os.Stderr, "ready") })
	}
	return reply, err
}

func (w *workload) command() []any {
	c := w.commands[rand.IntN(len(w.commands))]
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		if strings.Contains(a, "{n}") {
			a = strings.ReplaceAll(a, "{n}", strconv.Itoa(rand.IntN(max(w.Keys, 1))))
		}
		args[i] = a
	}
	return args
}

// decode does what an application does with a reply: it decodes it, and encodes the result.
func (w *workload) decode(reply string) {
	for range w.DecodesPerCall {
		var doc any
		if json.Unmarshal([]byte(reply), &doc) == nil {
			_, _ = json.Marshal(doc) // only the work matters
		}
	}
}

// leaks reports whether this call is one that does not return its connection.
func (w *workload) leaks() bool {
	return w.LeakEvery > 0 && w.borrowed.Add(1)%int64(w.LeakEvery) == 0
}

// dial opens a connection as the libraries do by default, and counts it.
func (w *workload) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.dials.Add(1)
	d := net.Dialer{Timeout: w.DialTimeout, KeepAlive: 5 * time.Minute} // go-redis has the same
	if d.Timeout == 0 {
		d.Timeout = 5 * time.Second // the default of go-redis and rueidis
	}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil || !w.TLS {
		return c, err
	}
	secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // the lab's own certificate
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}
