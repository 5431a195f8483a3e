package codis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"slowpath/internal/wire/resp"
)

// Proxy passes the commands of its clients on to servers, by the slots of their keys.
type Proxy struct {
	servers []*server
	slots   [Slots]slot
	moves   sync.Mutex // one migration at a time
	ctx     context.Context
}

// slot says where the keys of a slot are.
type slot struct {
	sync.RWMutex
	owner    *server
	from     *server        // keys are migrated from it to owner; nil: all of them are there
	inFlight sync.WaitGroup // requests sent to owner, without a reply
}

// New makes a proxy over servers at HOST:PORT. Each has as many slots, in their order.
func New(addrs []string) (*Proxy, error) {
	if len(addrs) == 0 || len(addrs) > Slots {
		return nil, fmt.Errorf("%d servers: give 1 to %d", len(addrs), Slots)
	}
	p := &Proxy{}
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("server %q: %w; give HOST:PORT", addr, err)
		}
		if p.server(addr) != nil {
			return nil, fmt.Errorf("server %s is named twice", addr)
		}
		p.servers = append(p.servers, newServer(addr))
	}
	for n := range p.slots {
		p.slots[n].owner = p.servers[n*len(addrs)/Slots]
	}
	return p, nil
}

func (p *Proxy) server(addr string) *server {
	for _, s := range p.servers {
		if s.addr == addr {
			return s
		}
	}
	return nil
}

func (p *Proxy) addrs() string {
	var out []string
	for _, s := range p.servers {
		out = append(out, s.addr)
	}
	return strings.Join(out, ", ")
}

// Serve passes commands on until ctx ends, or the listener fails. It does not wait for the calls under way.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.ctx = ctx
	for _, s := range p.servers {
		go s.run(ctx)
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting connections: %w", err)
		}
		go func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			newSession(p, conn).serve()
		}()
	}
}

// forward sends a request to the server of its key. Where the key may not have migrated yet, it does so first: the
// client waits, and so do all clients whose calls come after on the connections to both servers.
func (p *Proxy) forward(key []byte, r *request) {
	s := &p.slots[Slot(key)]
	s.RLock()
	defer s.RUnlock()
	if s.from != nil {
		if _, err := migrate(p.ctx, s.from, s.owner, string(key)); err != nil {
			r.end(nil, err)
			return
		}
	}
	s.inFlight.Add(1)
	r.ended = s.inFlight.Done
	p.send(s.owner, r)
}

func (p *Proxy) send(to *server, r *request) {
	select {
	case to.requests <- r:
	case <-p.ctx.Done():
		r.end(nil, errors.New("the proxy ends"))
	}
}

// owners is the reply to SLOTSOWNERS: for each range of slots its first and last, the address of its server, and that
// of the server from which its keys migrate, or an empty one.
func (p *Proxy) owners() []byte {
	var rows []resp.Value
	for n := 0; n < Slots; {
		owner, from := p.slots[n].state()
		last := n
		for last+1 < Slots {
			o, f := p.slots[last+1].state()
			if o != owner || f != from {
				break
			}
			last++
		}
		rows = append(rows, resp.Value{Kind: resp.Array, Elems: []resp.Value{
			{Kind: resp.Integer, Int: int64(n)}, {Kind: resp.Integer, Int: int64(last)}, bulk(owner), bulk(from),
		}})
		n = last + 1
	}
	return resp.AppendValue(nil, resp.Value{Kind: resp.Array, Elems: rows})
}

func (s *slot) state() (owner, from string) {
	s.RLock()
	defer s.RUnlock()
	if s.from != nil {
		from = s.from.addr
	}
	return s.owner.addr, from
}

func bulk(text string) resp.Value { return resp.Value{Kind: resp.BulkString, Str: []byte(text)} }
