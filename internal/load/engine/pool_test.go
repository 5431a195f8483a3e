package engine

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// TestPoolIsFair: the client that waits for longest is next, none is forgotten, and closing the pool wakes all.
func TestPoolIsFair(t *testing.T) { synctest.Test(t, poolIsFair) }

func poolIsFair(t *testing.T) {
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
		synctest.Wait() // until it is in the queue
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
	synctest.Wait()
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
