package main

import (
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

type workload struct {
	protocol.Options
	commands []protocol.Command // each as often as its weight
	dials    atomic.Int64
	borrowed atomic.Int64
	ready    sync.Once
	tally    *protocol.Tally
}

// work runs the workers until the context ends, and waits for them for a second at most: a library without a timeout
// may wait for ever.
func (w *workload) work(ctx context.Context, lib client) {
	var wg sync.WaitGroup
	for id := range w.Workers {
		wg.Go(func() { w.worker(ctx, id, lib.worker()) })
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

// worker makes calls at its share of the rate. A worker that is late does not catch up with a burst.
func (w *workload) worker(ctx context.Context, id int, c caller) {
	gap := time.Duration(0)
	if w.Rate > 0 {
		gap = time.Duration(float64(w.Workers) / w.Rate * float64(time.Second))
	}
	next := time.Now().Add(gap * time.Duration(id) / time.Duration(w.Workers))
	for sleep(ctx, time.Until(next)) {
		reply, _ := w.call(c)
		w.decode(reply)
		step := gap
		if w.Random {
			step = time.Duration(rand.ExpFloat64() * float64(gap))
		}
		if next = next.Add(step); time.Since(next) > gap {
			next = time.Now()
		}
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
