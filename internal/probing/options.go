package probing

import (
	"context"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// leastInterval is a time between two lines in which the lines before can still be read.
const leastInterval = 10 * time.Millisecond

// Options are the flags of probe, and what they say once they are checked.
type Options struct {
	Duration, Interval, Timeout time.Duration
	Rate, FreshRate, Record     string
	AsJSON                      bool
	Each                        Each

	perSecond, freshPerSecond float64
}

// Check reads what flags say. changed tells whether one was given.
func (f *Options) Check(changed func(flag string) bool) (err error) {
	if f.perSecond, err = cli.ParseRate(f.Rate); err != nil {
		return cli.Usagef("--rate %q: %w", f.Rate, err)
	}
	if f.freshPerSecond, err = cli.ParseRate(f.FreshRate); err != nil {
		return cli.Usagef("--fresh-rate %q: %w", f.FreshRate, err)
	}
	if f.Interval < leastInterval {
		return cli.Usagef("--interval %v: give at least %v", f.Interval, leastInterval)
	}
	if err := cli.Positive("timeout", f.Timeout); err != nil {
		return err
	}
	if err := cli.NotNegative("for", f.Duration); err != nil {
		return err
	}
	return f.Each.check(changed, f)
}

// Run probes targets, or with cluster all nodes of theirs, until the time is up or ctx ends.
func Run(ctx context.Context, a *cli.Program, f *Options, targets []target.Target, cluster bool) (err error) {
	if err := f.Each.checkTargets(targets); err != nil {
		return err
	}
	p := &probing{app: a, flags: f, clock: clock.New(), sink: discard{}}
	if f.Record != "" && recording.IsFile(f.Record) { // before the connections, which may take long
		return cli.Usagef("recording %s exists already; name another file or remove it", f.Record)
	}
	a.OnInterrupt("the table follows")
	if p.hops, err = greetHops(ctx, a, targets, cluster, f.Timeout); err != nil {
		return err
	}
	if f.Each.On {
		if err := p.beginEach(ctx); err != nil {
			return err
		}
	}
	if f.Record == "" {
		return p.run(ctx)
	}
	file, err := recording.Create(f.Record, 0)
	if err != nil {
		return cli.Usage(err)
	}
	p.sink = file
	err = p.run(ctx)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// discard is a sink for a probe that keeps nothing.
type discard struct{}

func (discard) Call(recording.Call, ...recording.Segment) {}
func (discard) Histogram(recording.Histogram)             {}
func (discard) Sample(recording.Sample)                   {}
func (discard) ConnUse(string, recording.ConnUse)         {}
func (discard) Event(recording.Event)                     {}
func (discard) Snapshot(recording.Snapshot)               {}
func (discard) SetMeta(string, string)                    {}
