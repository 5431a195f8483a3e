//go:build linux

package engine

import "sync"

// pool is what the clients of an application share: connections under one lock. Who finds none free waits, first come,
// first served; what is handed back goes to who waits for longest, or on top of the free ones, so that those used last
// are used next.
type pool struct {
	mu      sync.Mutex
	free    []*pooled
	waiting []chan *pooled // the first from head
	head    int
	ended   bool
}

func newPool(conns []*pooled) *pool { return &pool{free: conns} }

// take gives a connection, or nil when the pool has ended.
func (p *pool) take() *pooled {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return nil
	}
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c
	}
	turn := make(chan *pooled, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	return <-turn
}

// handBack gives a connection to the next.
func (p *pool) handBack(c *pooled) {
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

// end sends away who waits.
func (p *pool) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, turn := range p.waiting[p.head:] {
		turn <- nil
	}
	p.waiting, p.head = nil, 0
}
