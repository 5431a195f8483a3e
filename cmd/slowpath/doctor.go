package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cause"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/watch"
)

// watchFlags are the flags of doctor and record that shape a watch.
type watchFlags struct {
	duration  time.Duration
	slow      string
	noProbe   bool
	noHost    bool
	probeRate string
	timeout   time.Duration
	maxDisk   int64
}

func (w *watchFlags) add(c *cobra.Command, duration time.Duration) {
	f := c.Flags()
	f.DurationVar(&w.duration, "for", duration, "how long to watch (0: until Ctrl-C)")
	f.StringVar(&w.slow, "slow", "auto", "a call is slow from this `duration` on; auto: 5ms, more on a distant path")
	f.BoolVar(&w.noProbe, "no-probe", false, "make no calls of our own")
	f.BoolVar(&w.noHost, "no-host", false, "read no files of this host")
	f.StringVar(&w.probeRate, "probe-rate", "", "calls per second and node, e.g. 10/s (default 50/s)")
	f.DurationVar(&w.timeout, "timeout", watch.DefaultTimeout, "for the first connection")
	f.Int64Var(&w.maxDisk, "max-disk", recording.DefaultMaxDisk, "bound of the recording in `bytes`; the oldest samples are thinned first")
}

// options checks the flags.
func (w *watchFlags) options() (watch.Options, error) {
	o := watch.Options{For: w.duration, Slow: w.slow, Version: version, NoProbe: w.noProbe, NoHost: w.noHost, Timeout: w.timeout}
	for name, d := range map[string]time.Duration{"for": w.duration, "timeout": w.timeout} {
		if err := positive(name, d); err != nil {
			return o, err
		}
	}
	if w.slow != "auto" {
		if d, err := time.ParseDuration(w.slow); err != nil || d <= 0 {
			return o, usage(fmt.Errorf("--slow %q: give a duration such as 10ms, or auto", w.slow))
		}
	}
	if w.probeRate != "" {
		rate, err := parseRate(w.probeRate)
		if err != nil {
			return o, usage(fmt.Errorf("--probe-rate %q: %w", w.probeRate, err))
		}
		o.ProbeRate = rate
	}
	return o, nil
}

func (a *app) doctor() *cobra.Command {
	var w watchFlags
	var asJSON bool
	var keep string
	c := &cobra.Command{
		Use:   "doctor [TARGET…|FILE]",
		Short: "Watch a server, account for its slow calls, name the cause and the fix",
		Long: `doctor watches one or more servers, or reads a recording, and says why calls were slow.

A TARGET is HOST:PORT, a redis://, rediss:// or unix:// URL; several are hops of one path (load balancer, proxy, server) or seeds of
one cluster. Ctrl-C ends the watch early and still prints the verdict. Exit codes: 0 healthy or inconclusive, 1 findings, 2 usage,
3 cannot connect or log in.`,
		Example: `  slowpath doctor 10.0.0.5:6379
  REDISCLI_AUTH=secret slowpath doctor --user ops rediss://cache.example:6380 --for 2m
  slowpath doctor 127.0.0.1:6379 --for 8s --json
  slowpath doctor night.slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && recording.IsFile(args[0]) {
				return a.diagnose(args[0], asJSON)
			}
			if keep == "" {
				dir, err := os.MkdirTemp("", "slowpath-")
				if err != nil {
					return fmt.Errorf("making a place for the recording: %w", err)
				}
				defer os.RemoveAll(dir)
				keep = filepath.Join(dir, "watch.slowpath")
			}
			if err := a.watch(cmd.Context(), &w, args, keep); err != nil {
				return err
			}
			return a.diagnose(keep, asJSON)
		},
	}
	w.add(c, 30*time.Second)
	c.Flags().BoolVar(&asJSON, "json", false, "print "+cause.Schema)
	c.Flags().StringVar(&keep, "record", "", "keep the recording in this `file`")
	a.targetFlags(c)
	return c
}

// watch runs a watch into a recording at path. What was recorded until an error stays there, unless nothing was.
func (a *app) watch(ctx context.Context, w *watchFlags, args []string, path string) error {
	o, err := w.options()
	if err != nil {
		return err
	}
	if o.Targets, err = a.targets(args); err != nil {
		return err
	}
	rec, err := recording.Create(path, w.maxDisk)
	if err != nil {
		return usage(err)
	}
	o.Progress = func(s string) { a.progress("%s", s) }
	stop := a.countdown(ctx, o.For)
	err = watch.Run(ctx, o, rec)
	stop()
	if closeErr := rec.Close(); err == nil {
		err = closeErr
	} else {
		os.Remove(path) // nothing was watched
	}
	return err
}

// countdown shows how long the watch has run; the function that it returns ends it.
func (a *app) countdown(ctx context.Context, total time.Duration) func() {
	if !a.onTerminal() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		start := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				a.progressDone()
				return
			case <-tick.C:
				a.progress("watching, %s of %s (Ctrl-C ends it and gives the verdict)", time.Since(start).Round(time.Second), total)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// diagnose prints the verdict of a recording and sets the exit code.
func (a *app) diagnose(path string, asJSON bool) error {
	rec, err := recording.Open(path)
	if err != nil {
		return usage(err)
	}
	d := cause.Diagnose(rec, version)
	if d.Verdict == cause.Findings {
		a.code = exitFindings
	}
	if asJSON {
		return report.JSON(a.stdout, d)
	}
	return report.Text(a.stdout, d, a.style())
}
