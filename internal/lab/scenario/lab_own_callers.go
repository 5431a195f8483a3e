package scenario

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
)

// Callers in this process, for faults in which it matters what the socket does. They are measured as client programs
// are.
const (
	// SharedConn is one connection that all workers share, as in Lettuce, StackExchange.Redis and ioredis.
	SharedConn clients.Name = "shared-connection"
	// TwoWrites is a connection for each worker, which sends the head and the value of a SET in two writes.
	TwoWrites clients.Name = "two-writes"
)

// OwnKinds are all of them.
var OwnKinds = []clients.Name{SharedConn, TwoWrites, Redialling}

// processes are the callers with a process of their own.
var processes = func() []clients.Name { return clients.Known() }()

// writers are the callers that are known to write.
var writers = append(clients.Known(), TwoWrites)

// OwnCallers are callers in this process that run.
type OwnCallers struct {
	start  time.Time
	slices *protocol.Slices
	shared *sharedConn
	nagle  atomic.Bool // without TCP_NODELAY
	silent atomic.Pointer[silentFirst]
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// StartOwnCallers starts callers of a kind: o.Workers make o.Rate operations per second.
func (l *Lab) StartOwnCallers(ctx context.Context, kind clients.Name, o clients.Options) (*OwnCallers, error) {
	start := time.Now()
	c := &OwnCallers{start: start, slices: protocol.NewSlices(start, o.Slice)}
	var err error
	if c.shared, err = l.shareConn(ctx, o.Addresses[0]); err != nil {
		return nil, err
	}
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.Defer(func(context.Context) error { c.stop(); c.ended.Wait(); return nil })
	for id := range o.Workers {
		operation := func() error { return c.shared.do(ctx, "GET", "doc:"+itoa(rand.IntN(max(1, o.Keys)))) }
		switch kind {
		case Redialling:
			own := &redialler{addr: o.Addresses[0], silent: &c.silent}
			l.Defer(func(context.Context) error { own.close(); return nil })
			operation = func() error { return own.get(ctx, o.Keys) }
		case TwoWrites:
			own, err := dialCaller(ctx, net.Dialer{}, o.Addresses[0])
			if err != nil {
				return nil, err
			}
			l.Defer(func(context.Context) error { own.Close(); return nil })
			operation = func() error { return c.setInTwoWrites(ctx, own) }
		}
		gap := time.Duration(float64(o.Workers) / o.Rate * float64(time.Second))
		first := start.Add(gap * time.Duration(id) / time.Duration(o.Workers))
		c.ended.Go(func() { c.work(ctx, first, gap, operation) })
	}
	return c, nil
}

func (c *OwnCallers) setInTwoWrites(ctx context.Context, own *caller) error {
	defer own.endWith(ctx)()
	if err := own.SetNoDelay(!c.nagle.Load()); err != nil {
		return err
	}
	return setInTwoWrites(own, 500)
}

// work makes operations by a schedule; one that is late is missed, as in the client programs.
func (c *OwnCallers) work(ctx context.Context, next time.Time, gap time.Duration, operation func() error) {
	waits := c.slices.Worker()
	for pause(ctx, time.Until(next)) {
		waits.Due(next)
		if operation() == nil {
			waits.Succeeded(time.Now())
		}
		for next = next.Add(gap); time.Since(next) > gap; next = next.Add(gap) {
			waits.Due(next)
		}
	}
}

// Stop ends the callers and returns what they measured.
func (c *OwnCallers) Stop() clients.Summary {
	c.stop()
	c.ended.Wait()
	return clients.Summary{StartUnix: c.start.UnixNano(), Slices: c.slices.Sums(time.Now())}
}
