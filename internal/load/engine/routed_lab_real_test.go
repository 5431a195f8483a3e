//go:build linux

package engine_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// patience bounds what a test waits for, on a machine that is busy with others.
const patience = 90 * time.Second

// lab starts real servers.
type lab struct {
	*fleet.Fleet
	bin servers.Binary
}

func newLab(t *testing.T) lab {
	t.Helper()
	r, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(r)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := servers.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), servers.Redis7015, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return lab{f, bin}
}

// until gives up after patience.
func until(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func stopAfter(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		if err := stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func (l lab) cluster(t *testing.T, masters, replicas int, spec fleet.Spec) *fleet.Cluster {
	t.Helper()
	c, err := l.StartCluster(until(t), l.bin, masters, replicas, spec)
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, c.Stop)
	return c
}

func (l lab) server(t *testing.T, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	i, err := l.Start(until(t), l.bin, spec)
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, i.Stop)
	return i
}

// do sends a command, which must not be refused.
func do(t *testing.T, i *fleet.Instance, args ...string) any {
	t.Helper()
	reply, err := i.Do(until(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// under is a load that runs, and what it counted so far.
type under struct {
	mu     sync.Mutex
	sum    *engine.Tally
	last   map[string]int64 // Nodes of the last tally
	cancel context.CancelFunc
	done   chan struct{}
	result engine.Result
	err    error
}

// seen reads the sums so far.
func (u *under) seen(read func(sum *engine.Tally) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return read(u.sum)
}

// startLoad begins a load; it ends by its options, or by stop.
func startLoad(t *testing.T, o engine.Options, address, command string, keys uint64) *under {
	t.Helper()
	var err error
	if o.Target, err = target.Parse(address); err != nil {
		t.Fatal(err)
	}
	if o.Workload, err = workload.Compile(workload.Options{Commands: []string{command}, Keys: workload.Keys{High: keys -
		1}, Cluster: o.Cluster}); err != nil {
		t.Fatal(err)
	}
	o.Clock, o.Drain, o.Seed = clock.New(), patience, 1
	if o.Arrivals == "" {
		o.Arrivals = engine.Uniform
	}
	u := &under{sum: o.NewTally(), done: make(chan struct{})}
	o.OnTally = func(tally *engine.Tally) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.sum.Add(tally)
		u.last = maps.Clone(tally.Nodes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	u.cancel = cancel
	go func() {
		defer close(u.done)
		u.result, u.err = engine.Run(ctx, o)
	}()
	t.Cleanup(func() { u.cancel(); <-u.done })
	return u
}

// wait waits for the end, and checks that each call is accounted for.
func (u *under) wait(t *testing.T) *engine.Tally {
	t.Helper()
	select {
	case <-u.done:
	case <-until(t).Done():
		u.cancel()
		<-u.done
		t.Fatalf("the load did not end within %v; it counted %d calls, errors %v, again %v", patience, u.sum.Calls(),
			u.sum.Errors, u.sum.Retried)
	}
	if u.err != nil {
		t.Fatal(u.err)
	}
	if got := u.sum.Calls() + u.sum.Failed + u.result.InFlight; got != u.sum.Begun {
		t.Errorf("%d calls began, but %d were answered + %d failed + %d in flight = %d", u.sum.Begun, u.sum.Calls(),
			u.sum.Failed, u.result.InFlight, got)
	}
	return u.sum
}

func (u *under) stop(t *testing.T) *engine.Tally {
	t.Helper()
	u.cancel()
	return u.wait(t)
}
