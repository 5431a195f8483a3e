//go:build linux

// Package benching makes the loads that a command line asks for: its options, the data of a load, files and recordings
// of it, experiments of many loads, and what is shown meanwhile.
package benching

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/experiment"
	"slowpath/internal/load/results"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// greetTimeout bounds the first connection to the server.
const greetTimeout = source.DefaultTimeout

// collectAfter is the heap's growth, in percent, after which it is collected. A load keeps some 4 MB, of which the
// default would have it collected three times before it begins; and each time the world is stopped, workers are woken.
const collectAfter = 400

// Run makes the load that the flags ask for, or the loads.
func Run(ctx context.Context, a *named.CommandLine, f *Options, args []string) error {
	if a.Env("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(collectAfter))
	}
	if err := f.Work.SpellOut(); err != nil {
		return err
	}
	if err := f.Replay.check(f); err != nil {
		return err
	}
	if err := f.Experiment.check(f); err != nil {
		return err
	}
	failIf, err := f.failIf()
	if err != nil {
		return err
	}
	f.Load.Cluster = a.Where.Cluster
	if err := f.Replay.read(ctx, a, f); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.Experiment.Targets {
		return compareTargets(ctx, a, f, args)
	}
	targets, err := a.Targets(ctx, args)
	if err != nil {
		return err
	}
	b := &benching{app: a, flags: f, options: o, failIf: failIf}
	b.options.Load.Target = targets[0]
	if err := b.options.Load.Check(); err != nil { // a target may be several servers
		return cli.Usage(err)
	}
	b.options.Load.Clock = clock.New()
	b.options.Version = a.Version
	defer b.discardSummaries()
	if err := b.openSummaries(); err != nil {
		return err
	}
	if err = b.run(ctx); errors.Is(err, engine.ErrTopology) {
		return cli.Usage(err)
	}
	return err
}

// benching is a load and what goes on around it.
type benching struct {
	app     *named.CommandLine
	flags   *Options
	options bench.Options

	failIf    []experiment.FailIf
	summaries []*os.File
}

func (b *benching) run(ctx context.Context) error {
	a, t := b.app, b.options.Load.Target
	a.OnInterrupt("the result follows, its keys are removed")
	if b.flags.Keep {
		a.OnInterrupt("the result follows")
	}
	a.Progress("connecting to %s", t.Addr())
	g, err := b.greet(ctx)
	if err != nil {
		a.ProgressDone()
		return err
	}
	b.options.Target = bench.Target{Address: t.Addr(), Kind: kindOfServer(g), Server: g.Identity.Server}
	data, err := b.openData(ctx, g)
	if err != nil {
		a.ProgressDone()
		return err
	}
	if b.flags.Experiment.asked() {
		return errors.Join(b.makeExperiment(ctx), b.leave(ctx, data))
	}
	r, err := b.load(ctx)
	if r == nil {
		return errors.Join(err, b.leave(ctx, data))
	}
	if len(r.Mismatches) > 0 {
		a.Code = cli.ExitFindings
	}
	for _, f := range b.failIf {
		r.Checks = append(r.Checks, f.Check(r.Interrupted, runOf(r)))
	}
	b.exitAs(experiment.Outcome(r.Checks))
	printed := errors.Join(b.print(r), b.summarise(results.SummaryOfLoad(r)))
	return errors.Join(printed, err, b.leave(ctx, data))
}

// load makes the load, shows how far it is and writes its files. A result with an error is one whose files are not
// whole.
func (b *benching) load(ctx context.Context) (*bench.Result, error) {
	defer b.app.ProgressDone()
	files, err := openFiles(b.flags)
	if err != nil {
		return nil, err
	}
	rec, err := b.startRecording(ctx)
	if err != nil {
		files.discard()
		return nil, err
	}
	o := b.options
	shown := &live{app: b.app, connections: expectedConnections(&o.Load), total: lasts(&o.Load)}
	o.Load.OnStart = func(startNs int64) {
		files.begin(&o.Load, startNs)
		if rec != nil {
			rec.load.Start(startNs)
		}
	}
	o.OnSecond = func(s bench.Second, t *engine.Tally) {
		files.second(s, t)
		if rec != nil {
			rec.load.Second(s, t)
		}
		shown.second(s, t)
	}
	b.app.Progress("making %s to %s", format.Count(o.Load.Connections, "connection"), o.Load.Target.Addr())
	r, err := bench.Run(ctx, o)
	b.app.ProgressDone()
	if err != nil {
		files.discard()
		if rec != nil {
			rec.discard()
		}
		return nil, err
	}
	files.limit(r)
	err = files.close()
	if rec != nil {
		err = errors.Join(err, r.Record(rec.file, o.Load.Clock.Now()), rec.close(b.app))
	}
	return r, err
}

// master is the server to ask about the target and for its keys: the target itself, a master of its cluster, or the one
// that a sentinel names.
func (b *benching) master(ctx context.Context) (target.Target, error) {
	masters, err := engine.Masters(ctx, b.options.Load)
	if err != nil {
		return target.Target{}, err
	}
	return masters[0], nil
}

// greet makes the first connection to a master of the target.
func (b *benching) greet(ctx context.Context) (source.Greeting, error) {
	master, err := b.master(ctx)
	if err != nil {
		return source.Greeting{}, err
	}
	return source.Greet(ctx, master, greetTimeout)
}

func kindOfServer(g source.Greeting) string {
	switch {
	case g.Identity.ClusterEnabled:
		return "cluster"
	case g.Identity.Server == "":
		return "unknown"
	}
	return "standalone"
}

func (b *benching) print(r *bench.Result) error {
	if b.flags.AsJSON {
		return results.LoadJSON(b.app.Stdout, r)
	}
	return results.Load(b.app.Stdout, r, b.app.Style())
}

// CheckOneTarget: a load has one target; none is the server of redis-cli's defaults.
func (f *Options) CheckOneTarget(command string, args []string) error {
	if len(args) > 1 && !f.Experiment.Targets {
		return cli.Usagef("%s loads one server, not %d: name one, or add --compare-targets to compare them",
			command, len(args))
	}
	return nil
}
