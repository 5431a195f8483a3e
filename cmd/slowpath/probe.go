package main

import (
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source"
)

func (a *app) probe() *cobra.Command {
	var f probeFlags
	c := &cobra.Command{
		Use:   "probe [TARGET...]",
		Short: "A steady, phased probe: kept and fresh connections, several hops side by side",
		Long: `probe makes a few calls at a steady rate and times them: on a connection that it keeps, and on fresh
ones phase by phase (dns, connect, tls, handshake, command). The schedule is absolute: a stall of one second counts
for every call that was due in it. Several targets are probed side by side, such as the load balancer, the proxy and
the server of one path; with -c, all nodes of a cluster.

It prints a line of latencies per target and interval, and a table at the end or after Ctrl-C. It judges
nothing; doctor does.

With --each it prints a line for each cycle instead: every --rate, the --steps one after the other, on a kept
connection, or with the step connect on a new one. The time of each step is without slowpath's own delay (OWN).
A new connection logs in with one write (AUTH, HELLO, SELECT, CLIENT SETNAME): the step auth, else HANDSHAKE.
--ping asks the kernel of the server's host beside each cycle, which answers while the server's process does not run.
--pin shows how long no thread of slowpath would have got the CPU during the cycle.`,
		Example: `  slowpath probe 10.0.0.5:6379
  slowpath probe lb:6379 proxy:6379 10.0.0.5:6379 --for 1m
  slowpath probe 10.0.0.5:6379 --rate 10/s --interval 5s
  slowpath probe 10.0.0.5:6379 --for 10s --json
  slowpath probe 10.0.0.5:6379 --each --ping --pin 0,1
  slowpath probe 10.0.0.5:6379 --each --steps connect,auth,get,set,del --write`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runProbe(cmd, &f, args) },
	}
	fl := c.Flags()
	fl.DurationVar(&f.duration, "for", 0, "how long to probe; 0: until Ctrl-C (default)")
	fl.StringVar(&f.rate, "rate", "50/s", "`calls` per second on the kept connection of each target")
	fl.StringVar(&f.freshRate, "fresh-rate", "2/s", "fresh `connections` per second to each target")
	fl.DurationVar(&f.interval, "interval", 15*time.Second, "a line of latencies per target every so often")
	fl.DurationVar(&f.timeout, "timeout", source.DefaultTimeout, "for the first connection to each target")
	fl.StringVar(&f.record, "record", "", "keep every call in this recording `file`, which must not exist")
	fl.BoolVar(&f.asJSON, "json", false, "print "+probeSchema+" documents, one per line")
	cli.Group(fl, "A line for each cycle", func() { f.each.add(fl) })
	a.targetFlags(c)
	return c
}

// leastInterval is a time between two lines in which the lines before can still be read.
const leastInterval = 10 * time.Millisecond

// probeFlags are the flags of probe, and what they say once they are checked.
type probeFlags struct {
	duration, interval, timeout time.Duration
	rate, freshRate, record     string
	asJSON                      bool
	each                        eachFlags

	perSecond, freshPerSecond float64
}

func (f *probeFlags) check(cmd *cobra.Command) (err error) {
	if f.perSecond, err = cli.ParseRate(f.rate); err != nil {
		return cli.Usagef("--rate %q: %w", f.rate, err)
	}
	if f.freshPerSecond, err = cli.ParseRate(f.freshRate); err != nil {
		return cli.Usagef("--fresh-rate %q: %w", f.freshRate, err)
	}
	if f.interval < leastInterval {
		return cli.Usagef("--interval %v: give at least %v", f.interval, leastInterval)
	}
	if err := cli.Positive("timeout", f.timeout); err != nil {
		return err
	}
	if err := cli.NotNegative("for", f.duration); err != nil {
		return err
	}
	return f.each.check(cmd, f)
}

func (a *app) runProbe(cmd *cobra.Command, f *probeFlags, args []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	targets, err := a.targets(ctx, args)
	if err == nil {
		err = f.each.checkTargets(targets)
	}
	if err != nil {
		return err
	}
	p := &probing{app: a, flags: f, clock: clock.New(), sink: discard{}}
	if f.record != "" && recording.IsFile(f.record) { // before the connections, which may take long
		return cli.Usagef("recording %s exists already; name another file or remove it", f.record)
	}
	a.OnInterrupt("the table follows")
	if p.hops, err = a.hops(ctx, targets, f.timeout); err != nil {
		return err
	}
	if f.each.on {
		if err := p.beginEach(ctx); err != nil {
			return err
		}
	}
	if f.record == "" {
		return p.run(ctx)
	}
	file, err := recording.Create(f.record, 0)
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
