// Package traffic is the load that scenarios run under: real connections that send real commands at a bounded rate. It
// is not the load generator of `slowpath bench`; its times are for the lab's log only.
package traffic

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/wire/resp"
)

// Spec is a load.
type Spec struct {
	Addr     string // HOST:PORT; or a path of a unix socket
	Password string
	Name     string // CLIENT SETNAME of its connections; empty: they have none
	TLS      bool   // the server's certificate is not verified: it is the lab's own
	Conns    int
	Pipeline int     // commands per write, at least 1
	Rate     float64 // commands per second over all connections; 0: as fast as replies come
	// Command gives the k-th command of a connection. The random source is the connection's own.
	Command func(r *rand.Rand, k int) []string
	// PerCall opens a new connection for every batch, as a client without a pool does.
	PerCall bool
	// Took, if not nil, is called with the time of each batch, from the first write to the last reply.
	Took func(time.Duration)
}

// Load is a running load.
type Load struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sent   atomic.Int64
	failed atomic.Int64
	last   atomic.Pointer[error] // errors are of many types, which atomic.Value would not take
}

// Start starts the load. After an error it reconnects with a short pause, as clients do, until Stop.
func Start(ctx context.Context, s Spec) *Load {
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{cancel: cancel}
	s.Pipeline = max(s.Pipeline, 1)
	for i := range max(s.Conns, 1) {
		l.wg.Go(func() { l.worker(ctx, s, i) })
	}
	return l
}

// Stop ends the load and waits for its connections to close.
func (l *Load) Stop() {
	l.cancel()
	l.wg.Wait()
}

// Sent counts the replies, Failed the failed connections and the error replies.
func (l *Load) Sent() int64   { return l.sent.Load() }
func (l *Load) Failed() int64 { return l.failed.Load() }

// Err is the last error of a connection, for the lab's log.
func (l *Load) Err() error {
	if err := l.last.Load(); err != nil {
		return *err
	}
	return nil
}

// keep counts an error and keeps it as the last one.
func (l *Load) keep(err error) {
	l.failed.Add(1)
	l.last.Store(&err)
}

func (l *Load) worker(ctx context.Context, s Spec, id int) {
	r := rand.New(rand.NewPCG(uint64(id), 42))
	pace := newPace(s, id)
	k := 0
	for ctx.Err() == nil {
		if err := l.connection(ctx, s, r, pace, &k); err != nil && ctx.Err() == nil {
			l.keep(err)
			wait(ctx, time.Now().Add(20*time.Millisecond))
		}
	}
}

// connection uses one connection until it breaks, ctx ends, or (PerCall) one batch is done.
func (l *Load) connection(ctx context.Context, s Spec, r *rand.Rand, p *pace, k *int) error {
	if s.PerCall && !p.wait(ctx) {
		return nil
	}
	c, err := dial(ctx, s)
	if err != nil {
		return fmt.Errorf("load on %s: %w", s.Addr, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	w, in := bufio.NewWriterSize(c, 64<<10), resp.NewReader(c, resp.DefaultLimits)
	if s.Password != "" {
		if err := l.batch(w, in, [][]string{{"AUTH", s.Password}}); err != nil {
			return err
		}
	}
	if s.Name != "" {
		if err := l.batch(w, in, [][]string{{"CLIENT", "SETNAME", s.Name}}); err != nil {
			return err
		}
	}
	for {
		if !s.PerCall && !p.wait(ctx) {
			return nil
		}
		cmds := make([][]string, s.Pipeline)
		for i := range cmds {
			cmds[i] = s.Command(r, *k)
			*k++
		}
		start := time.Now()
		if err := l.batch(w, in, cmds); err != nil {
			return err
		}
		if s.Took != nil {
			s.Took(time.Since(start))
		}
		if s.PerCall {
			return nil
		}
	}
}

func (l *Load) batch(w *bufio.Writer, in *resp.Reader, cmds [][]string) error {
	var buf []byte
	for _, c := range cmds {
		buf = resp.AppendCommand(buf[:0], c...)
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for range cmds {
		sum, err := in.Skip()
		if err != nil {
			return err
		}
		l.sent.Add(1)
		if err := sum.Err(); err != nil {
			l.keep(err)
		}
	}
	return nil
}

func dial(ctx context.Context, s Spec) (net.Conn, error) {
	network := "tcp"
	if s.Addr[0] == '/' {
		network = "unix"
	}
	d := &net.Dialer{Timeout: 10 * time.Second}
	if !s.TLS {
		return d.DialContext(ctx, network, s.Addr)
	}
	return (&tls.Dialer{NetDialer: d, Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, network, s.Addr)
}

// pace spaces the batches of one connection evenly.
type pace struct {
	gap  time.Duration
	next time.Time
}

func newPace(s Spec, id int) *pace {
	if s.Rate <= 0 {
		return &pace{}
	}
	gap := time.Duration(float64(time.Second) * float64(max(s.Conns, 1)*s.Pipeline) / s.Rate)
	return &pace{gap: gap, next: time.Now().Add(gap * time.Duration(id) / time.Duration(max(s.Conns, 1)))}
}

func (p *pace) wait(ctx context.Context) bool {
	if p.gap == 0 {
		return ctx.Err() == nil
	}
	ok := wait(ctx, p.next)
	p.next = p.next.Add(p.gap)
	if behind := time.Since(p.next); behind > time.Second {
		p.next = time.Now() // a load that is late does not catch up with a burst
	}
	return ok
}

func wait(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
