//go:build linux

package engine

import "sync"

// pool is the connections that the clients of an application share, under one lock. A client that finds none free
// waits, first come, first served. A connection that is given back goes to the first that waits, or on top of the free
// ones, so that the last used is used next.
type pool struct {
	mu      sync.Mutex
	free    []*pooledConn
	waiting []chan *pooledConn // the first from head
	head    int
	closed  bool
}

func newPool(conns []*pooledConn) *pool { return &pool{free: conns} }

// borrow takes a connection out of the pool; nil when the pool is closed.
func (p *pool) borrow() *pooledConn {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c
	}
	turn := make(chan *pooledConn, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	return <-turn
}

// giveBack returns a connection to the pool.
func (p *pool) giveBack(c *pooledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head == len(p.waiting) {
		p.waiting, p.head = p.waiting[:0], 0
		p.free = append(p.free, c)
		return
	}
	turn := p.waiting[p.head]
	p.waiting[p.head] = nil
	if p.head++; p.head > 1024 && p.head > len(p.waiting)/2 {
		p.waiting, p.head = append(p.waiting[:0], p.waiting[p.head:]...), 0
	}
	turn <- c // has room for it
}

// close closes the pool: all that wait get nil.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, turn := range p.waiting[p.head:] {
		turn <- nil
	}
	p.waiting, p.head = nil, 0
}
