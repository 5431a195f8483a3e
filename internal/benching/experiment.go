//go:build linux

package benching

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/experiment"
	"slowpath/internal/load/results"
)

// experimenting is an experiment under way: loads that belong together.
type experimenting struct {
	*benching
	experiment *Experiment
	loads      uint64
}

// makeExperiment makes the loads of --sweep, --find-max, --repeat and --compare, and prints what they show.
func (b *benching) makeExperiment(ctx context.Context) error {
	s := &experimenting{benching: b, experiment: &b.flags.Experiment}
	s.experiment.eachLasts = lasts(&b.options.Load)
	defer b.app.ProgressDone()
	switch {
	case s.experiment.Sweep != "":
		return s.runSweep(ctx)
	case s.experiment.FindMax != "":
		return s.runFindMax(ctx)
	}
	return s.runRepeats(ctx)
}

func (s *experimenting) runSweep(ctx context.Context) error {
	f := s.experiment
	sweep, err := experiment.MakeSweep(ctx, experiment.SweepOptions{
		Setup: s.setup(), Axis: f.axis, Repeats: f.Repeat,
		Gain: f.gainShare, Seed: s.flags.Load.Seed,
		Load: func(ctx context.Context, value int) (experiment.Run, error) {
			return s.measure(ctx, f.at(*s.flags, value))
		},
		Progress: func(n, of, value int) {
			s.app.Progress("load %d of %d, %s left: %s=%d", n, of, s.left(of-n+1), f.axis.Name, value)
		},
	})
	if err != nil {
		return err
	}
	s.app.ProgressDone()
	if s.flags.AsJSON {
		return results.SweepJSON(s.app.Stdout, sweep)
	}
	return results.Sweep(s.app.Stdout, sweep, s.app.Style())
}

// maxLoads of --find-max: one that needs more does not come to an end on this machine.
const maxLoads = 80

func (s *experimenting) runFindMax(ctx context.Context) error {
	f := s.experiment
	found, err := experiment.FindCapacity(ctx, experiment.CapacityOptions{
		Setup: s.setup(), Limit: f.limit,
		Start: f.startsWith, MaxPerSecond: engine.MaxPerSecond,
		Precision: f.closeness, Confirm: f.Confirm, MaxRuns: maxLoads,
		Load: func(ctx context.Context, perSecond, part float64) (experiment.Run, error) {
			flags := *s.flags
			flags.Rate = strconv.FormatFloat(perSecond, 'f', -1, 64)
			flags.Load.Duration = time.Duration(float64(flags.Load.Duration) * part)
			return s.measureAfter(ctx, flags, time.Duration(float64(f.Warmup)*part))
		},
		Progress: func(n experiment.Step) {
			s.app.Progress("load %d, %s: %s; holds %s, fails %s; about %v left", n.Load, n.Purpose,
				format.Rate(n.PerSecond), bound(n.Holds), bound(n.Fails), n.Left.Round(time.Second))
		},
	})
	if err != nil {
		return err
	}
	s.app.ProgressDone()
	if found.Holds == nil {
		s.app.Code = cli.ExitFindings
	}
	if s.flags.AsJSON {
		return results.CapacityJSON(s.app.Stdout, found)
	}
	return results.Capacity(s.app.Stdout, found, s.app.Style())
}

func bound(perSecond float64) string {
	if perSecond == 0 || math.IsInf(perSecond, 1) {
		return "?"
	}
	return format.Rate(perSecond)
}

func (s *experimenting) runRepeats(ctx context.Context) error {
	f := s.experiment
	repeats, err := experiment.MakeRepeats(ctx, experiment.RepeatsOptions{
		Setup: s.setup(), Repeats: f.Repeat,
		Open: s.options.Load.Open(), Baseline: f.baseline, FailIf: s.failIf,
		Load:     func(ctx context.Context) (experiment.Run, error) { return s.measure(ctx, *s.flags) },
		Progress: func(n int) { s.app.Progress("load %d of %d, %s left", n, f.Repeat, s.left(f.Repeat-n+1)) },
	})
	if err != nil {
		return err
	}
	s.app.ProgressDone()
	s.exitAs(experiment.Outcome(slices.Concat(repeats.Checks, repeats.Comparison.Checks())))
	if s.flags.AsJSON {
		err = results.RepeatsJSON(s.app.Stdout, repeats)
	} else {
		err = results.Repeats(s.app.Stdout, repeats, s.app.Style())
	}
	return errors.Join(err, s.summarise(results.SummaryOfRepeats(repeats)))
}

// left is how long so many loads take.
func (s *experimenting) left(loads int) time.Duration {
	return (time.Duration(loads) * (s.experiment.eachLasts + s.experiment.Warmup)).Round(time.Second)
}

func (s *experimenting) setup() experiment.Setup {
	return experiment.Setup{
		Version: s.app.Version, Target: s.options.Target, Settings: bench.SettingsOf(s.options),
		DurationNs: int64(s.experiment.eachLasts), WarmUpNs: int64(s.experiment.Warmup),
	}
}

// measure makes one load, and before it the one that does not count. Each has a seed of its own, so that repeats are
// not the same keys again.
func (s *experimenting) measure(ctx context.Context, flags Options) (experiment.Run, error) {
	return s.measureAfter(ctx, flags, s.experiment.Warmup)
}

func (s *experimenting) measureAfter(ctx context.Context, flags Options, warmup time.Duration) (experiment.Run,
	error,
) {
	r, err := s.measured(ctx, flags, warmup)
	if err != nil {
		return experiment.Run{}, err
	}
	return runOf(r), nil
}

func (s *experimenting) measured(ctx context.Context, flags Options, warmup time.Duration) (*bench.Result, error) {
	s.loads++
	flags.Load.Seed += s.loads
	if warmup > 0 {
		warm := flags
		warm.Load.Duration, warm.Load.Requests = warmup, 0
		if _, err := s.one(ctx, warm); err != nil {
			return nil, err
		}
	}
	return s.one(ctx, flags)
}

func (s *experimenting) one(ctx context.Context, flags Options) (*bench.Result, error) {
	o, err := flags.options()
	if err != nil {
		return nil, err
	}
	o.Load.Target, o.Load.Clock, o.Target, o.Version = s.options.Load.Target, s.options.Load.Clock, s.options.Target,
		s.options.Version
	return bench.Run(ctx, o)
}

// runOf gives the results of a load that experiments use. A generator that only shares the server's CPUs is seen in
// limited_by: how fast both are together is still what was asked for.
func runOf(r *bench.Result) experiment.Run {
	var failed int64
	for _, n := range r.Errors {
		failed += n
	}
	out := experiment.Run{
		Start: r.Start, Seconds: r.Seconds, Requests: r.Requests,
		RequestsPerSecond: r.RequestsPerSecond, Latency: quantilesOf(r.Latency),
		Service: quantilesOf(r.Service), ErrorShare: float64(failed) / float64(max(r.Requests, failed, 1)),
		CPUSecondsPerMillion: r.Generator.CPUSecondsPerMillion,
		Unsent:               r.Unanswered.Unsent, LimitedBy: r.LimitedBy, Sentence: r.Bottleneck.Sentence,
		GeneratorLimited: r.LimitedBy == bottleneck.ByGeneratorCPU,
	}
	out.ServerCPUSecondsPerMillion = cpuPerMillion(r, false)
	out.ProxyCPUSecondsPerMillion = cpuPerMillion(r, true)
	if p := r.Schedule; p != nil {
		out.LateP50Ns, out.LateP99Ns, out.LateMaxNs = p.LateP50Ns, p.LateP99Ns, p.LateMaxNs
	}
	return out
}

// cpuPerMillion is what a million requests cost the servers, or the proxies; nil where not all of them were seen, or
// there is none.
func cpuPerMillion(r *bench.Result, proxies bool) *float64 {
	var ns int64
	n := 0
	for _, s := range r.Servers {
		if s.Proxy != proxies {
			continue
		}
		if s.CPUFrom == "" {
			return nil
		}
		ns += s.CPUNs
		n++
	}
	if n == 0 || r.Requests == 0 {
		return nil
	}
	v := float64(ns) / 1e9 / (float64(r.Requests) / 1e6)
	return &v
}

func quantilesOf(l bench.Latency) experiment.Latency {
	return experiment.Latency{
		MeanNs: l.MeanNs, P50Ns: l.P50Ns, P90Ns: l.P90Ns, P99Ns: l.P99Ns, P999Ns: l.P999Ns,
		P9999Ns: l.P9999Ns, MaxNs: l.MaxNs,
	}
}

// baselineOf reads the document of repeats or of one load.
func baselineOf(name string, body []byte) (*experiment.Baseline, error) {
	repeats, err := experiment.ParseRepeats(body)
	if err == nil {
		return &experiment.Baseline{Name: name, Setup: repeats.Setup, Runs: repeats.Runs}, nil
	}
	one, notLoad := bench.Parse(body)
	if notLoad != nil {
		return nil, err
	}
	setup := experiment.Setup{Version: one.Version, Target: one.Target, Settings: one.Settings}
	return &experiment.Baseline{Name: name, Setup: setup, Runs: []experiment.Run{runOf(one)}}, nil
}
