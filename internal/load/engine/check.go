//go:build linux

package engine

import (
	"cmp"
	"errors"
	"fmt"
)

// TwoTimes: a call can be due before it is sent, so that its time from the intended time (Response) differs from that
// since the send (Service).
func (o *Options) TwoTimes() bool {
	return o.Open() || o.PerCall || o.ReconnectEvery > 0 || o.ColdStart || o.Pool > 0
}

// ErrOptions: options that exclude each other.
var ErrOptions = errors.New("these do not go together")

// Check sets defaults and refuses options that exclude each other. Run calls it, too. Its errors match ErrOptions.
func (o *Options) Check() error {
	o.ReadFrom = cmp.Or(o.ReadFrom, Master)
	plans := 0
	for _, on := range []bool{o.PerCall, o.ReconnectEvery > 0, o.Pool > 0} {
		if on {
			plans++
		}
	}
	switch {
	case plans > 1:
		return fmt.Errorf("%w: a connection per call, connections that are opened again, and a pool: choose one",
			ErrOptions)
	case (o.PerCall || o.Pool > 0) && o.Pipeline > 1:
		return fmt.Errorf("%w: a pipeline of %d, and connections that carry one call at a time: leave out the pipeline",
			ErrOptions, o.Pipeline)
	case o.Pool > 0 && o.Workers < 1:
		return fmt.Errorf("%w: a pool of %d and no workers: give their number", ErrOptions, o.Pool)
	case o.Pool == 0 && o.Workers > 0:
		return fmt.Errorf("%w: %d workers and no pool that they share: give its connections", ErrOptions,
			o.Workers)
	case o.Pool > 0 && o.BusyPoll:
		return fmt.Errorf("%w: busy polling, and the workers of a pool, which sleep as those of an application: "+
			"leave out one", ErrOptions)
	case o.Subscribers > 0 && o.Workload != nil && len(o.Workload.Channels) == 0:
		return errNothingPublished
	}
	if err := o.checkReplay(); err != nil {
		return err
	}
	if err := o.checkRouting(); err != nil {
		return err
	}
	o.Pipeline = max(o.Pipeline, 1)
	if o.Pool > 0 {
		o.Connections = o.Pool
	}
	return nil
}
