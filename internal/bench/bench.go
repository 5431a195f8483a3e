//go:build linux

package bench

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/load"
)

// Options of a load whose result is wanted.
type Options struct {
	Load    load.Options // OnTally is taken
	Version string       // of this program
	Target  Target       // as it presented itself
	// Workload is what the settings of the result say of it.
	Workload any
	// OnSecond, if set, is told of each second in order, shortly after its end; the tally is valid until it returns. It may take up to a
	// second without harm to the load.
	OnSecond func(Second, *load.Tally)
}

// Run makes the load. It ends by its time, its number of calls or with ctx; none of them is an error. Errors are those of load.Run: of the
// first connections, and of the host.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Load.Clock == nil {
		o.Load.Clock = clock.New()
	}
	c := newCollector(len(o.Load.Workload.Ops), o.Load.Open(), min(max(o.Load.Threads, 1), o.Load.Connections))
	if o.OnSecond != nil {
		c.onSecond = o.OnSecond
	}
	o.Load.OnTally = c.add
	before := processCPU()
	ran, err := load.Run(ctx, o.Load)
	cpu := processCPU() - before
	if err != nil {
		return nil, err
	}
	s := summary{Options: o, collector: c, ran: ran, cpu: cpu, interrupted: ctx.Err() != nil}
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
