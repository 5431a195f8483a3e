package incident

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
)

// swallowProxy is a proxy before a server that loses one reply of so many to a client: it reads it, and sends nothing
// on. The connection stays, and TCP has nothing to send again: that a reply is missing only its caller can notice, by a
// timeout. Others' replies, doctor's own among them, are passed on.
type swallowProxy struct {
	net.Listener
	server string
	oneIn  int
	of     string // name of the client that loses some
	ended  sync.WaitGroup
	mu     sync.Mutex
	open   map[net.Conn]bool // nil after the end
}

// swallowingProxy starts one and returns its address.
func (l *Lab) swallowingProxy(ctx context.Context, server, of string, oneIn int) (string, error) {
	in, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("starting the proxy that loses replies: %w", err)
	}
	p := &swallowProxy{Listener: in, server: server, of: of, oneIn: oneIn, open: map[net.Conn]bool{}}
	p.ended.Go(p.serve)
	l.Defer(func(context.Context) error { p.end(); return nil })
	return in.Addr().String(), nil
}

func (p *swallowProxy) serve() {
	for {
		near, err := p.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		far, err := net.Dial("tcp", p.server)
		if err != nil || !p.keep(near, far) {
			near.Close()
			continue
		}
		var of atomic.Bool
		p.ended.Go(func() { p.requests(far, near, &of); p.drop(near, far) }) // ends with either of the two
		p.ended.Go(func() { p.replies(near, far, &of); p.drop(near, far) })
	}
}

// requests passes on what the client sends, and learns from it whose connection this is.
func (p *swallowProxy) requests(far, near net.Conn, of *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := near.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte(p.of)) {
			of.Store(true)
		}
		if _, err := far.Write(buf[:n]); err != nil {
			return
		}
	}
}

// replies passes on what the server sends, except for what is lost. What it sends at once are the replies to what was
// asked at once.
func (p *swallowProxy) replies(near, far net.Conn, of *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		if of.Load() && rand.IntN(p.oneIn) == 0 {
			continue
		}
		if _, err := near.Write(buf[:n]); err != nil {
			return
		}
	}
}

// keep remembers the two ends of a connection until they are dropped; false after the end.
func (p *swallowProxy) keep(near, far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		far.Close()
		return false
	}
	p.open[near], p.open[far] = true, true
	return true
}

func (p *swallowProxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

func (p *swallowProxy) end() {
	p.Close()
	p.mu.Lock()
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.ended.Wait()
}
