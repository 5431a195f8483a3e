//go:build linux

package main

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/results"
	"slowpath/internal/load/workload"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

func (a *app) bench() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [TARGET…]",
		Short: shortBench,
		Long: `bench loads a server and measures every call. Without --rate the loop is closed: each connection
keeps --pipeline calls in flight, and the result is how fast the server goes. With --rate it is open: calls are due
by a schedule, whether or not others have come back, and latencies count from there, as users feel
them.

With --replay it sends the commands of a log: of redis-cli monitor, or of a recording. Each client of the log
has a connection, on which its requests keep their order; what could do harm, blocks, or belongs to a connection
alone is left out, and the result says so.

It reads and writes only keys that begin with slowpath:, and removes them at the end; --keep leaves them. Ctrl-C
ends the load and prints the result so far.

Names for --command: ` + workload.Named() + `.

A --command can be a template: {key} is the number of a key, {value} a value, {rand:LOW-HIGH} a random number,
{unique} a number that no other call has, {due} when the call was due. Several commands have ; between them. For
published messages that begin with {due}: the result says how long they took to reach subscribers.`,
		Example: `  slowpath bench 10.0.0.5:6379 --connections 50 --pipeline 16 --for 30s
  slowpath bench 10.0.0.5:6379 --rate 5000/s --connections 20 --for 1m
  slowpath bench 10.0.0.5:6379 --ratio 1:9 --prefill --value-size 1kb
  slowpath bench 10.0.0.5:6379 --ramp 1000/s..50000/s --for 1m --csv ramp.csv
  timeout 60 redis-cli monitor > day.log; slowpath bench 10.0.0.5:6379 --replay day.log --replay-speed 2
  slowpath bench 10.0.0.5:6379 --sweep connections=1..1000
  slowpath bench 10.0.0.5:6379 --find-max 'p99<1ms and errors<0.1%'
  slowpath bench 10.0.0.5:6379 --repeat 6 --json > before.json
  slowpath bench 10.0.0.5:6379 --compare before.json
  slowpath bench --compare-targets 10.0.0.5:6379 10.0.0.6:7000 proxy:10.0.0.7:22121`,
		Args: f.checkTargets,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runBench(cmd.Context(), &f, args) },
	}
	f.add(c)
	a.targetFlags(c)
	return c
}

// checkTargets: a load has one target; none is the server of redis-cli's defaults.
func (f *benchFlags) checkTargets(cmd *cobra.Command, args []string) error {
	if len(args) > 1 && !f.experiment.targets {
		return cli.Usagef("%s loads one server, not %d: name one, or add --compare-targets to compare them",
			cmd.CommandPath(), len(args))
	}
	return nil
}

// greetTimeout bounds the first connection to the server.
const greetTimeout = source.DefaultTimeout

// collectAfter is the heap's growth, in percent, after which it is collected. A load keeps some 4 MB, of which the
// default would have it collected three times before it begins; and each time the world is stopped, workers are woken.
const collectAfter = 400

func (a *app) runBench(ctx context.Context, f *benchFlags, args []string) error {
	if a.Env("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(collectAfter))
	}
	if err := f.work.spellOut(); err != nil {
		return err
	}
	if err := f.replay.check(f); err != nil {
		return err
	}
	if err := f.experiment.check(f); err != nil {
		return err
	}
	f.load.Cluster = a.where.Cluster
	if err := f.replay.read(ctx, a, f); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.experiment.targets {
		return a.compareTargets(ctx, f, args)
	}
	targets, err := a.targets(ctx, args)
	if err != nil {
		return err
	}
	b := &benching{app: a, flags: f, options: o}
	b.options.Load.Target = targets[0]
	if err := b.options.Load.Check(); err != nil { // a target may be several servers
		return cli.Usage(err)
	}
	b.options.Load.Clock = clock.New()
	b.options.Version = version
	return b.run(ctx)
}

// benching is a load and what goes on around it.
type benching struct {
	app     *app
	flags   *benchFlags
	options bench.Options
}

func (b *benching) run(ctx context.Context) error {
	a, t := b.app, b.options.Load.Target
	a.OnInterrupt("the result follows, its keys are removed")
	if b.flags.keep {
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
	if b.flags.experiment.asked() {
		return errors.Join(b.makeExperiment(ctx), b.leave(ctx, data))
	}
	r, err := b.load(ctx)
	if r == nil {
		return errors.Join(err, b.leave(ctx, data))
	}
	if len(r.Mismatches) > 0 {
		a.Code = cli.ExitFindings
	}
	printed := b.print(r)
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
	if b.flags.asJSON {
		return results.LoadJSON(b.app.Stdout, r)
	}
	return results.Load(b.app.Stdout, r, b.app.Style())
}
