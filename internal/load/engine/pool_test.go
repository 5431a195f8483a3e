package engine

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// TestPool: clients that share fewer connections than they are wait for them, and the wait is part of their calls'
// time.
func TestPool(t *testing.T) {
	i := start(t, servers.Redis7015, fleet.Spec{})
	for name, change := range map[string]func(*Options){
		"shared": func(o *Options) { o.Pool, o.Workers = 2, 20 },
		"own":    func(o *Options) { o.Pool, o.Workers = 20, 20 },
		"cold":   func(o *Options) { o.Pool, o.Workers, o.ColdStart = 2, 20, true },
		"open": func(o *Options) {
			o.Pool, o.Workers, o.Requests, o.Duration = 2, 20, 0, time.Second
			o.Schedule = []Stretch{{Lasts: time.Second, From: 500, To: 500}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, to(i))
			o.Pipeline = 1
			change(&o)
			before := served(t, i, "get")
			total, r := sum(t, t.Context(), o)
			calls := total.Calls()
			clean(t, total, r, calls)
			if n := served(t, i, "get") - before; n != calls || o.Open() && calls+r.Unsent != 500 || !o.Open() &&
				calls != o.Requests {
				t.Errorf("%d calls, %d unsent; the server saw %d", calls, r.Unsent, n)
			}
			op := total.Ops[0]
			if total.PoolWait.TotalCount() != calls || total.Dials.Done == 0 || total.Dials.Done > int64(o.Pool) {
				t.Errorf("%d calls, %d waits, %d dials", calls, total.PoolWait.TotalCount(), total.Dials.Done)
			}
			if op.Response.Mean() < total.PoolWait.Mean() || op.Response.Mean() < op.Service.Mean() {
				t.Errorf("response %f, service %f, wait %f", op.Response.Mean(), op.Service.Mean(),
					total.PoolWait.Mean())
			}
			// With 20 clients and 2 connections 18 wait at any time: 9 times as long as the others talk to the server.
			if name == "shared" && total.PoolWait.Mean() < 2*op.Service.Mean() {
				t.Errorf("service %f, wait %f", op.Service.Mean(), total.PoolWait.Mean())
			}
		})
	}
}

// TestPoolIsFair: the client that waits for longest is next, none is forgotten, and closing the pool wakes all.
func TestPoolIsFair(t *testing.T) {
	p := newPool([]*pooledConn{{}})
	first := p.borrow()
	const clients = 3000 // more than the queue keeps before it moves up
	var wg sync.WaitGroup
	got := make(chan int, clients)
	for i := range clients {
		wg.Go(func() {
			if c := p.borrow(); c != nil {
				got <- i
				p.giveBack(c)
			}
		})
		for queued := 0; queued <= i; { // within the time of the whole test
			runtime.Gosched()
			p.mu.Lock()
			queued = len(p.waiting) - p.head
			p.mu.Unlock()
		}
	}
	p.giveBack(first)
	wg.Wait()
	for i := range clients {
		if at := <-got; at != i {
			t.Fatalf("client %d came in place %d", at, i)
		}
	}
	last := p.borrow()
	wg.Go(func() {
		if p.borrow() != nil {
			t.Error("a connection after the end")
		}
	})
	await(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.waiting) > p.head })
	p.close()
	wg.Wait()
	if p.giveBack(last); p.borrow() != nil {
		t.Error("a connection after the end")
	}
}

// TestContradictingOptions: they are refused before a connection is opened.
func TestContradictingOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"pool and per call":     {PerCall: true, Pool: 1, Workers: 1},
		"pool and reconnect":    {ReconnectEvery: 2, Pool: 1, Workers: 1},
		"pipeline per call":     {PerCall: true, Pipeline: 2},
		"pool without workers":  {Pool: 3},
		"pipeline through pool": {Pool: 3, Workers: 3, Pipeline: 2},
	} {
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
