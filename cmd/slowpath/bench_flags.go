//go:build linux

package main

import (
	"cmp"
	"math"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	load     engine.Options
	mode     string
	rate     string
	ramp     string
	schedule string

	work   workFlags
	replay replayFlags

	prefill, keep, yes bool

	asJSON     bool
	csv, hlog  string
	startAt    string
	record     string
	probe      bool
	experiment experimentFlags
}

func (f *benchFlags) add(c *cobra.Command) {
	fl := c.Flags()
	cli.Alias(fl, map[string]string{"timeout": "call-timeout", "warm-up": "warmup", "rounds": "repeat"})
	o := &f.load
	cli.Group(fl, "Load", func() {
		fl.IntVar(&o.Connections, "connections", 50, "`number` of connections")
		fl.IntVar(&o.Pipeline, "pipeline", 1, "calls in flight on each connection")
		fl.StringVar(&f.mode, "pipeline-mode", "window", "`window`: keep so many in flight; batch: send so many when "+
			"all before are back")
		fl.IntVar(&o.Threads, "threads", 1, "`number` of threads that send and receive")
		fl.DurationVar(&o.Duration, "for", 0, "how long (default 10s, unless --requests is given; 0: until Ctrl-C)")
		fl.Int64Var(&o.Requests, "requests", 0, "`number` of calls after which it ends")
		fl.StringVar(&f.startAt, "start-at", "", "make the connections, and begin at this `moment` of the wall "+
			"clock: 2026-11-21T18:00:00Z, or +10s; for several machines (see merge)")
		fl.BoolVar(&o.BusyPoll, "busy-poll", false, "spin instead of sleeping: takes a whole CPU per thread")
		fl.Uint64Var(&o.Seed, "seed", 1, "`number` from which keys, values and Poisson arrivals are drawn")
	})
	cli.Group(fl, "Connections", func() {
		fl.BoolVar(&o.PerCall, "per-call", false, "a connection for each call, closed after its reply; --connections "+
			"is how many at a time")
		fl.IntVar(&o.ReconnectEvery, "reconnect-every", 0, "open a connection again after about this `number` of calls")
		fl.BoolVar(&o.ColdStart, "cold-start", false, "begin before the connections are made, so that the first calls "+
			"wait for them")
		fl.IntVar(&o.Pool, "pool", 0, "`number` of connections that --pool-workers share")
		fl.IntVar(&o.Workers, "pool-workers", 0, "`number` of workers that take a connection of --pool for each call")
		fl.IntVar(&o.Subscribers, "subscribers", 0, "`number` of connections that subscribe to what the load publishes")
		fl.DurationVar(&o.Timeout, "call-timeout", 0, "fail calls without a reply so long after they were sent "+
			"(default: wait)")
	})
	cli.Group(fl, "Open loop", func() {
		fl.StringVar(&f.rate, "rate", "", "`calls` per second over all connections, due whether or not others are "+
			"back: 5000/s")
		fl.StringVar(&f.ramp, "ramp", "", "a rate that changes evenly `FROM..TO` over --for: 1000/s..50000/s")
		fl.StringVar(&f.schedule, "schedule", "", "`file` with lines of two numbers: seconds, calls per second (0: a "+
			"pause)")
		fl.StringVar(&o.Arrivals, "arrivals", engine.Uniform, "`uniform`: evenly; poisson: at random, as those of "+
			"many users")
	})
	cli.Group(fl, "Work", func() { f.work.add(fl) })
	cli.Group(fl, "Replay of a log", func() { f.replay.add(fl) })
	cli.Group(fl, "Data", func() {
		fl.BoolVar(&f.prefill, "prefill", false, "write every key once before the load, so that reads find something")
		fl.BoolVar(&o.Verify, "verify", false, "hold what is read against what a load of the same --seed, "+
			"--value-size and --value-data wrote: add --prefill, or commands that write; makes the load slower")
		fl.BoolVar(&f.keep, "keep", false, "leave the keys of the load in the server")
		fl.BoolVar(&f.yes, "yes", false, "load a server that is not on this host and holds keys of others")
	})
	cli.Group(fl, "Nodes", func() {
		fl.StringVar(&o.ReadFrom, "read-from", engine.Master, "which `nodes` reads go to: master, replica or any")
	})
	cli.Group(fl, "Experiments: many loads", func() { f.experiment.add(fl) })
	cli.Group(fl, "Output", func() {
		fl.BoolVar(&f.asJSON, "json", false, "print a "+bench.Schema+" document, or that of the experiment")
		fl.StringVar(&f.record, "record", "", "keep the load, and what a watch sees of the server meanwhile, in this "+
			"`file` for slowpath doctor")
		fl.BoolVar(&f.probe, "probe", false, "with --record: probe the server during the load, too")
		fl.StringVar(&f.csv, "csv", "", "write the results of each second to this `file`, which must not exist")
		fl.StringVar(&f.hlog, "hlog", "", "write the latencies of each second as an HdrHistogram log to this `file`, "+
			"which must not exist")
	})
}

// options checks the flags.
func (f *benchFlags) options() (o bench.Options, err error) {
	if err := f.checkNumbers(); err != nil {
		return o, err
	}
	if err := f.checkWords(); err != nil {
		return o, err
	}
	if f.load.Duration == 0 && f.load.Requests == 0 && f.schedule == "" && f.load.Replay == nil && !f.endless() {
		f.load.Duration = defaultDuration
	}
	if f.load.Schedule, err = f.stretches(); err != nil {
		return o, err
	}
	if o.StartAt, err = parseStartAt(f.startAt, time.Now()); err != nil {
		return o, err
	}
	o.Workload = f.replay.said(f.work.keyPrefix)
	if f.load.Replay == nil {
		o.Workload = f.work.said()
		if f.load.Workload, err = f.work.compile(&f.load); err != nil {
			return o, err
		}
		if err = f.checkBytes(); err != nil {
			return o, err
		}
	}
	if err := f.load.Check(); err != nil {
		return o, cli.Usage(err)
	}
	o.Load = f.load
	return o, nil
}

// What a load may have at most, so that its own memory is bounded: a call in flight takes 32 bytes and its request, a
// thread and a worker of a pool their histograms.
const (
	mostConnections = 100_000
	mostPipeline    = 100_000
	mostInFlight    = 2_000_000     // calls
	mostBytes       = 2_000_000_000 // of requests in flight
	mostThreads     = 1024
	mostWorkers     = 10_000 // and subscribers
)

// checkBytes refuses a load whose requests in flight do not fit into the memory of most machines.
func (f *benchFlags) checkBytes() error {
	calls := cmp.Or(f.load.Pool, f.load.Connections) * f.load.Pipeline
	each := f.load.Workload.RequestBytes()
	if total := int64(calls) * each; total > mostBytes {
		return cli.Usagef("--connections %d with --pipeline %d and requests of about %s: %s in flight; at most "+
			"%s: lower one of them, or --value-size", f.load.Connections, f.load.Pipeline, format.Bytes(each),
			format.Bytes(total), format.Bytes(mostBytes))
	}
	return nil
}

// checkNumbers refuses numbers that are too small or too large, and threads that leave no CPU to others.
func (f *benchFlags) checkNumbers() error {
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"connections", f.load.Connections, 1, mostConnections},
		{"pipeline", f.load.Pipeline, 1, mostPipeline},
		{"threads", f.load.Threads, 1, mostThreads},
		{"reconnect-every", f.load.ReconnectEvery, 0, math.MaxInt},
		{"pool", f.load.Pool, 0, mostConnections},
		{"pool-workers", f.load.Workers, 0, mostWorkers},
		{"subscribers", f.load.Subscribers, 0, mostWorkers},
	} {
		switch {
		case n.value > n.most:
			return cli.Usagef("--%s %d: give at most %d", n.name, n.value, n.most)
		case n.value >= n.least:
		case n.least == 0:
			return cli.Usagef("--%s %d: must not be negative", n.name, n.value)
		default:
			return cli.Usagef("--%s %d: give at least %d", n.name, n.value, n.least)
		}
	}
	if calls := f.load.Connections * f.load.Pipeline; calls > mostInFlight {
		return cli.Usagef("--connections %d with --pipeline %d: %d calls in flight; at most %d: lower one of them",
			f.load.Connections, f.load.Pipeline, calls, mostInFlight)
	}
	if f.load.Requests < 0 {
		return cli.Usagef("--requests %d: give at least 1, or leave it out", f.load.Requests)
	}
	if err := cli.NotNegative("for", f.load.Duration); err != nil {
		return err
	}
	if f.load.Timeout < 0 {
		return cli.Usagef("--call-timeout %v: must not be negative (0: wait)", f.load.Timeout)
	}
	if f.load.Workers > 0 && f.load.Pool == 0 {
		return cli.Usagef("--pool-workers %d share a pool: add --pool", f.load.Workers)
	}
	return f.checkThreads(runtime.NumCPU())
}

// checkWords refuses words that are none of those that a flag takes.
func (f *benchFlags) checkWords() error {
	if f.probe && f.record == "" {
		return cli.Usagef("--probe is part of a recording: add --record FILE.slowpath")
	}
	switch f.mode {
	case "window":
	case "batch":
		f.load.Batch = true
	default:
		return cli.Usagef("--pipeline-mode %q: give window or batch", f.mode)
	}
	if f.load.Arrivals != engine.Uniform && f.load.Arrivals != engine.Poisson {
		return cli.Usagef("--arrivals %q: give %s or %s", f.load.Arrivals, engine.Uniform, engine.Poisson)
	}
	switch f.load.ReadFrom {
	case engine.Master, engine.Replica, engine.Any:
	default:
		return cli.Usagef("--read-from %q: give %s, %s or %s", f.load.ReadFrom, engine.Master, engine.Replica,
			engine.Any)
	}
	return nil
}

// checkThreads: threads that spin must leave a CPU to the rest of this host, which may be the server itself.
func (f *benchFlags) checkThreads(cpus int) error {
	threads := min(f.load.Threads, f.load.Connections)
	if f.load.BusyPoll && threads >= cpus {
		return cli.Usagef("--busy-poll with --threads %d would take all %d CPUs that this process may use: give "+
			"at most %d, or leave it out", threads, cpus, cpus-1)
	}
	return nil
}

// endless: --for 0 is until Ctrl-C.
func (f *benchFlags) endless() bool {
	return f.experiment.given.Changed("for") && !f.experiment.asked()
}

// defaultDuration of a load that has neither a time nor a number of calls.
const defaultDuration = 10 * time.Second

// endless is the length of a schedule that ends with the number of calls, or by Ctrl-C.
const endless = 100 * 365 * 24 * time.Hour
