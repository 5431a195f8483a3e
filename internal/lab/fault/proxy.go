package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy passes connections on to a server, and data later than it came or not at all. The kernels of many virtual
// machines have no netem and cannot delay packets, so that a proxy in this process does.
type Proxy struct {
	Server       string        // HOST:PORT
	AcceptDelay  time.Duration // of the connection to the server, after one from a client was accepted
	RequestDelay time.Duration // of all data to the server; throughput is not limited
	ReplyDelay   time.Duration // of all data to the client
	// LoseOneIn, if not 0, makes the proxy read and drop one reply of this many. The connection stays, and TCP has
	// nothing to retransmit: only a timeout of the caller can notice.
	LoseOneIn int
	// LoseOf limits the loss to connections whose requests contain it, such as a client's name: doctor's own calls are
	// passed on.
	LoseOf string

	now atomic.Pointer[Path] // what it does to data now; nil: as the fields say
}

// Path is what a proxy does to data.
type Path struct {
	ReplyDelay time.Duration
	LoseOneIn  int
}

// Change changes what a running proxy does to data that comes from now on.
func (p *Proxy) Change(now Path) { p.now.Store(&now) }

func (p *Proxy) path() Path {
	if now := p.now.Load(); now != nil {
		return *now
	}
	return Path{p.ReplyDelay, p.LoseOneIn}
}

// Start starts the proxy on loopback and returns its address. It ends with the lab.
func (p *Proxy) Start(ctx context.Context, l Lab) (addr string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("starting a proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			if client, err := listener.Accept(); err == nil {
				ended.Go(func() { p.serve(ctx, client) })
			}
		}
	})
	l.Defer(func(context.Context) error {
		cancel()
		err := listener.Close()
		ended.Wait()
		return err
	})
	return listener.Addr().String(), nil
}

// serve passes one connection on.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	select {
	case <-time.After(p.AcceptDelay):
	case <-ctx.Done():
		return
	}
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Server)
	if err != nil {
		return // the client sees its connection closed
	}
	p.between(ctx, client, server)
}

// between passes data on in both directions, until either end closes its connection or ctx ends.
func (p *Proxy) between(ctx context.Context, client, server net.Conn) {
	end := func() { client.Close(); server.Close() }
	defer end()
	defer context.AfterFunc(ctx, end)()
	var loses atomic.Bool // replies, where the proxy loses any
	var both sync.WaitGroup
	both.Go(func() {
		defer end()
		pass(server, client, func() time.Duration { return p.RequestDelay }, func(data []byte) bool {
			if !loses.Load() && bytes.Contains(data, []byte(p.LoseOf)) {
				loses.Store(true)
			}
			return true
		})
	})
	both.Go(func() {
		defer end()
		// What a server writes at once are the replies to what it was asked at once.
		pass(client, server, func() time.Duration { return p.path().ReplyDelay }, func([]byte) bool {
			oneIn := p.path().LoseOneIn
			return oneIn == 0 || !loses.Load() || rand.IntN(oneIn) > 0
		})
	})
	both.Wait()
}

// pass reads and writes until either fails. It writes the data that keep allows. Reading and writing is what most
// proxies do, where io.Copy between two connections would splice.
func pass(to io.Writer, from io.Reader, delay func() time.Duration, keep func(data []byte) bool) {
	late := delayed(to, delay)
	defer late.close()
	to = late
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if !keep(buf[:n]) {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// delayedWriter writes each chunk of data some time after it came. Chunks wait in a queue, so that many are on their
// way at a time, as on a long line. Where nothing is delayed it writes at once.
type delayedWriter struct {
	to    io.Writer
	delay func() time.Duration
	onWay atomic.Int32 // chunks in the queue, or being written
	queue chan chunk
	ended chan struct{} // closed when all is written, or a write has failed
}

type chunk struct {
	data []byte
	due  time.Time
}

// chunksOnTheWay bounds the queue: 64 MB of chunks of 64 kB.
const chunksOnTheWay = 1024

func delayed(to io.Writer, delay func() time.Duration) *delayedWriter {
	w := &delayedWriter{to: to, delay: delay, queue: make(chan chunk, chunksOnTheWay), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for c := range w.queue {
			time.Sleep(time.Until(c.due)) // the fault itself
			if _, err := to.Write(c.data); err != nil {
				return
			}
			w.onWay.Add(-1)
		}
	}()
	return w
}

// errWrite says that a chunk before could not be written.
var errWrite = errors.New("the other end has closed")

func (w *delayedWriter) Write(data []byte) (int, error) {
	delay := w.delay()
	if delay == 0 && w.onWay.Load() == 0 {
		return w.to.Write(data)
	}
	w.onWay.Add(1)
	select {
	case w.queue <- chunk{bytes.Clone(data), time.Now().Add(delay)}:
		return len(data), nil
	case <-w.ended:
		return 0, errWrite
	}
}

// close waits until all is written, or cannot be.
func (w *delayedWriter) close() {
	close(w.queue)
	<-w.ended
}
