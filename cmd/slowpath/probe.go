package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/clock"
	"slowpath/internal/probe"
	"slowpath/internal/recording"
	"slowpath/internal/session"
	"slowpath/internal/target"
)

func (a *app) probe() *cobra.Command {
	var f probeFlags
	c := &cobra.Command{
		Use:   "probe [TARGET…]",
		Short: "A steady, phased probe: kept and fresh connections, several hops side by side",
		Long: `probe makes a few calls at a steady rate and times them phase by phase: dns, connect, tls, handshake and command, on a kept connection and on
fresh ones. The schedule is absolute: a stall of one second counts for every call that was due in it. Several targets are probed side by
side, such as the load balancer, the proxy and the server of one path. It judges nothing; doctor does.`,
		Example: `  slowpath probe 10.0.0.5:6379
  slowpath probe lb:6379 proxy:6379 10.0.0.5:6379 --for 1m
  slowpath probe 10.0.0.5:6379 --rate 10/s --interval 15s --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runProbe(cmd.Context(), &f, args) },
	}
	fl := c.Flags()
	fl.DurationVar(&f.duration, "for", 0, "how long to probe (0: until Ctrl-C)")
	fl.StringVar(&f.rate, "rate", "50/s", "calls per second on the kept connection of each target")
	fl.StringVar(&f.freshRate, "fresh-rate", "2/s", "fresh connections per second to each target")
	fl.DurationVar(&f.interval, "interval", 15*time.Second, "a line of figures per target every so often")
	fl.DurationVar(&f.timeout, "timeout", 5*time.Second, "for the first connection")
	fl.StringVar(&f.record, "record", "", "keep every call in this recording `file`")
	fl.BoolVar(&f.asJSON, "json", false, "print slowpath.probe/v1 documents, one per line")
	a.targetFlags(c)
	return c
}

type probeFlags struct {
	duration, interval, timeout time.Duration
	rate, freshRate, record     string
	asJSON                      bool
}

func (a *app) runProbe(ctx context.Context, f *probeFlags, args []string) error {
	rate, err := parseRate(f.rate)
	if err != nil {
		return usage(fmt.Errorf("--rate %q: %w", f.rate, err))
	}
	fresh, err := parseRate(f.freshRate)
	if err != nil {
		return usage(fmt.Errorf("--fresh-rate %q: %w", f.freshRate, err))
	}
	if f.interval <= 0 {
		return usage(fmt.Errorf("--interval %v: must be positive", f.interval))
	}
	if err := positive("for", f.duration); err != nil {
		return err
	}
	targets, err := a.targets(args)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := greet(ctx, t, f.timeout); err != nil {
			return err
		}
	}
	var sink recording.Sink = discard{}
	if f.record != "" {
		w, err := recording.Create(filepath.Clean(f.record), 0)
		if err != nil {
			return usage(err)
		}
		defer w.Close()
		sink = w
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	return a.probeAll(ctx, f, targets, rate, fresh, sink)
}

// greet makes sure that there is a server before the probing begins: a wrong address is an error, not a slow call.
func greet(ctx context.Context, t target.Target, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, _, err := session.Open(ctx, t, "slowpath")
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Do(ctx, "PING")
	return err
}

func (a *app) probeAll(ctx context.Context, f *probeFlags, targets []target.Target, rate, fresh float64, sink recording.Sink) error {
	clk := clock.New()
	tallies := make([]*tally, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		tl := newTally(t.Addr())
		tallies[i] = tl
		wg.Go(func() {
			_ = probe.Watch(ctx, probe.Options{Target: t, Node: t.Addr(), Clock: clk, Sink: sink, Rate: rate, FreshRate: fresh, OnCall: tl.add,
				OnPhases: tl.phases}) // it has no error of its own
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	start, live, line := time.Now(), time.NewTicker(time.Second), time.NewTicker(f.interval)
	defer live.Stop()
	defer line.Stop()
	for running := true; running; {
		select {
		case <-live.C:
			a.progress("%s", liveLine(tallies, time.Since(start)))
		case <-line.C:
			a.progressDone()
			a.probeRows(f, tallies, "interval")
		case <-done:
			running = false
		}
	}
	a.progressDone()
	return a.probeRows(f, tallies, "total")
}

// probeRows prints the figures of the interval that ends, or of the whole.
func (a *app) probeRows(f *probeFlags, tallies []*tally, what string) error {
	for i, tl := range tallies {
		r := tl.row(what)
		if f.asJSON {
			if err := json.NewEncoder(a.stdout).Encode(r); err != nil {
				return err
			}
			continue
		}
		if what == "total" {
			r.table(a.stdout, i == 0)
			continue
		}
		fmt.Fprintln(a.stdout, r.line())
	}
	return nil
}

// discard is a sink for a probe that keeps nothing.
type discard struct{}

func (discard) Call(recording.Call, ...recording.Segment) {}
func (discard) Histogram(recording.Histogram)             {}
func (discard) Sample(recording.Sample)                   {}
func (discard) Event(recording.Event)                     {}
func (discard) Snapshot(recording.Snapshot)               {}
func (discard) SetMeta(string, string)                    {}
