//go:build linux

package benching

import (
	"cmp"
	"math"
	"runtime"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
)

// Options are the flags of bench.
type Options struct {
	Load     engine.Options
	Mode     string
	Rate     string
	Ramp     string
	Schedule string

	Work   Work
	Replay Replay

	Prefill, Keep, Yes bool

	AsJSON     bool
	CSV, HLog  string
	StartAt    string
	Record     string
	FailIf     string
	Summary    []string // files
	Probe      bool
	Experiment Experiment
}

// options checks the flags.
func (f *Options) options() (o bench.Options, err error) {
	if err := f.checkNumbers(); err != nil {
		return o, err
	}
	if err := f.checkWords(); err != nil {
		return o, err
	}
	if f.Load.Duration == 0 && f.Load.Requests == 0 && f.Schedule == "" && f.Load.Replay == nil && !f.endless() {
		f.Load.Duration = defaultDuration
	}
	if f.Load.Schedule, err = f.stretches(); err != nil {
		return o, err
	}
	if o.StartAt, err = parseStartAt(f.StartAt, time.Now()); err != nil {
		return o, err
	}
	o.Workload = f.Replay.said(f.Work.KeyPrefix)
	if f.Load.Replay == nil {
		o.Workload = f.Work.said()
		if f.Load.Workload, err = f.Work.compile(&f.Load); err != nil {
			return o, err
		}
		if err = f.checkBytes(); err != nil {
			return o, err
		}
	}
	if err := f.Load.Check(); err != nil {
		return o, cli.Usage(err)
	}
	o.Load = f.Load
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
func (f *Options) checkBytes() error {
	calls := cmp.Or(f.Load.Pool, f.Load.Connections) * f.Load.Pipeline
	each := f.Load.Workload.RequestBytes()
	if total := int64(calls) * each; total > mostBytes {
		return cli.Usagef("--connections %d with --pipeline %d and requests of about %s: %s in flight; at most "+
			"%s: lower one of them, or --value-size", f.Load.Connections, f.Load.Pipeline, format.Bytes(each),
			format.Bytes(total), format.Bytes(mostBytes))
	}
	return nil
}

// checkNumbers refuses numbers that are too small or too large, and threads that leave no CPU to others.
func (f *Options) checkNumbers() error {
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"connections", f.Load.Connections, 1, mostConnections},
		{"pipeline", f.Load.Pipeline, 1, mostPipeline},
		{"threads", f.Load.Threads, 1, mostThreads},
		{"reconnect-every", f.Load.ReconnectEvery, 0, math.MaxInt},
		{"pool", f.Load.Pool, 0, mostConnections},
		{"pool-workers", f.Load.Workers, 0, mostWorkers},
		{"subscribers", f.Load.Subscribers, 0, mostWorkers},
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
	if calls := f.Load.Connections * f.Load.Pipeline; calls > mostInFlight {
		return cli.Usagef("--connections %d with --pipeline %d: %d calls in flight; at most %d: lower one of them",
			f.Load.Connections, f.Load.Pipeline, calls, mostInFlight)
	}
	if f.Load.Requests < 0 {
		return cli.Usagef("--requests %d: give at least 1, or leave it out", f.Load.Requests)
	}
	if err := cli.NotNegative("for", f.Load.Duration); err != nil {
		return err
	}
	if f.Load.Timeout < 0 {
		return cli.Usagef("--call-timeout %v: must not be negative (0: wait)", f.Load.Timeout)
	}
	if f.Load.Workers > 0 && f.Load.Pool == 0 {
		return cli.Usagef("--pool-workers %d share a pool: add --pool", f.Load.Workers)
	}
	return f.checkThreads(runtime.NumCPU())
}

// checkWords refuses words that are none of those that a flag takes.
func (f *Options) checkWords() error {
	if f.Probe && f.Record == "" {
		return cli.Usagef("--probe is part of a recording: add --record FILE.slowpath")
	}
	switch f.Mode {
	case "window":
	case "batch":
		f.Load.Batch = true
	default:
		return cli.Usagef("--pipeline-mode %q: give window or batch", f.Mode)
	}
	if f.Load.Arrivals != engine.Uniform && f.Load.Arrivals != engine.Poisson {
		return cli.Usagef("--arrivals %q: give %s or %s", f.Load.Arrivals, engine.Uniform, engine.Poisson)
	}
	switch f.Load.ReadFrom {
	case engine.Master, engine.Replica, engine.Any:
	default:
		return cli.Usagef("--read-from %q: give %s, %s or %s", f.Load.ReadFrom, engine.Master, engine.Replica,
			engine.Any)
	}
	return nil
}

// checkThreads: threads that spin must leave a CPU to the rest of this host, which may be the server itself.
func (f *Options) checkThreads(cpus int) error {
	threads := min(f.Load.Threads, f.Load.Connections)
	if f.Load.BusyPoll && threads >= cpus {
		return cli.Usagef("--busy-poll with --threads %d would take all %d CPUs that this process may use: give "+
			"at most %d, or leave it out", threads, cpus, cpus-1)
	}
	return nil
}

// endless: --for 0 is until Ctrl-C.
func (f *Options) endless() bool {
	return f.Experiment.Given.Changed("for") && !f.Experiment.asked()
}

// defaultDuration of a load that has neither a time nor a number of calls.
const defaultDuration = 10 * time.Second

// endless is the length of a schedule that ends with the number of calls, or by Ctrl-C.
const endless = 100 * 365 * 24 * time.Hour
