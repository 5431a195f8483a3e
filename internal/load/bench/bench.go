//go:build linux

package bench

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/load/engine"
)

// Options of a load whose result is wanted.
type Options struct {
	Load    engine.Options // OnConnected, Begin and OnTally are set by Run
	Version string         // of this program
	Target  Target         // as it identifies itself
	// Workload is what the settings of the result say about the workload.
	Workload any
	// StartAt, if set, is a start barrier: the wall-clock time at which the load begins, after its connections are
	// open.
	StartAt time.Time
	// OnSecond, if set, is called for each second in order, shortly after its end; the tally is valid until it returns.
	// It may take up to a second without slowing the load.
	OnSecond func(Second, *engine.Tally)
}

// ErrStartPassed: the time of Options.StartAt was over before the load could begin.
var ErrStartPassed = errors.New("the time to start at has passed")

// Run makes the load. It ends by its time, its number of calls or with ctx; none of them is an error. Errors are those
// of engine.Run: of the first connections, and of the host.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Load.Clock == nil {
		o.Load.Clock = clock.New()
	}
	if err := o.Load.Check(); err != nil {
		return nil, err
	}
	c := newCollector(len(o.Load.Ops()), o.Load.TwoTimes(), workersOf(o.Load))
	if o.OnSecond != nil {
		c.onSecond = o.OnSecond
	}
	b := newObserver(ctx, o)
	o.Load.OnTally = func(t *engine.Tally) {
		b.add(t)
		c.add(t)
	}
	o.Load.OnConnected, o.Load.Begin = b.monitor.SetConnections, b.begin
	before := processCPU()
	ran, err := engine.Run(ctx, o.Load)
	cpu := processCPU() - before
	b.monitor.Stop()
	if err != nil {
		return nil, err
	}
	s := summary{Options: o, collector: c, ran: ran, cpu: cpu, interrupted: ctx.Err() != nil, observer: b}
	return s.result()
}

// processCPU is the CPU time of this process, user and system.
func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil { // it cannot fail (getrusage(2))
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
