//go:build linux

package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/benching"
	"slowpath/internal/cli"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
)

func addBenchFlags(c *cobra.Command, f *benching.Options) {
	fl := c.Flags()
	cli.Alias(fl, map[string]string{"timeout": "call-timeout", "warm-up": "warmup", "rounds": "repeat"})
	o := &f.Load
	cli.Group(fl, "Load", func() {
		fl.IntVar(&o.Connections, "connections", 50, "`number` of connections")
		fl.IntVar(&o.Pipeline, "pipeline", 1, "calls in flight on each connection")
		fl.StringVar(&f.Mode, "pipeline-mode", "window", "`window`: keep so many in flight; batch: send so many when "+
			"all before are back")
		fl.IntVar(&o.Threads, "threads", 1, "`number` of threads that send and receive")
		fl.DurationVar(&o.Duration, "for", 0, "how long (default 10s, unless --requests is given; 0: until Ctrl-C)")
		fl.Int64Var(&o.Requests, "requests", 0, "`number` of calls after which it ends")
		fl.StringVar(&f.StartAt, "start-at", "", "make the connections, and begin at this `moment` of the wall "+
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
		fl.StringVar(&f.Rate, "rate", "", "`calls` per second over all connections, due whether or not others are "+
			"back: 5000/s")
		fl.StringVar(&f.Ramp, "ramp", "", "a rate that changes evenly `FROM..TO` over --for: 1000/s..50000/s")
		fl.StringVar(&f.Schedule, "schedule", "", "`file` with lines of two numbers: seconds, calls per second (0: a "+
			"pause)")
		fl.StringVar(&o.Arrivals, "arrivals", engine.Uniform, "`uniform`: evenly; poisson: at random, as those of "+
			"many users")
	})
	cli.Group(fl, "Work", func() { addWorkFlags(fl, &f.Work) })
	cli.Group(fl, "Replay of a log", func() { addReplayFlags(fl, &f.Replay) })
	cli.Group(fl, "Data", func() {
		fl.BoolVar(&f.Prefill, "prefill", false, "write every key once before the load, so that reads find something")
		fl.BoolVar(&o.Verify, "verify", false, "hold what is read against what a load of the same --seed, "+
			"--value-size and --value-data wrote: add --prefill, or commands that write; makes the load slower")
		fl.BoolVar(&f.Keep, "keep", false, "leave the keys of the load in the server")
		fl.BoolVar(&f.Yes, "yes", false, "load a server that is not on this host and holds keys of others")
	})
	cli.Group(fl, "Nodes", func() {
		fl.StringVar(&o.ReadFrom, "read-from", engine.Master, "which `nodes` reads go to: master, replica or any")
	})
	cli.Group(fl, "Experiments: many loads", func() { addExperimentFlags(fl, &f.Experiment) })
	cli.Group(fl, "Output", func() {
		fl.BoolVar(&f.AsJSON, "json", false, "print a "+bench.Schema+" document, or that of the experiment")
		fl.StringVar(&f.FailIf, "fail-if", "", "exit with 1 where one of these `bounds` is passed, and with 2 "+
			"where that cannot be told: 'p99>1ms,errors>0.1%'; with --repeat by most of the loads")
		fl.StringSliceVar(&f.Summary, "summary", nil, "also write figures and bounds to this `file`: Markdown where "+
			"its name ends in .md, JUnit where it ends in .xml")
		fl.StringVar(&f.Record, "record", "", "keep the load, and what a watch sees of the server meanwhile, in this "+
			"`file` for slowpath doctor")
		fl.BoolVar(&f.Probe, "probe", false, "with --record: probe the server during the load, too")
		fl.StringVar(&f.CSV, "csv", "", "write the results of each second to this `file`, which must not exist")
		fl.StringVar(&f.HLog, "hlog", "", "write the latencies of each second as an HdrHistogram log to this `file`, "+
			"which must not exist")
	})
}

func addWorkFlags(fl *pflag.FlagSet, f *benching.Work) {
	f.Given = fl
	fl.StringArrayVar(&f.Commands, "command", []string{"get"}, "`command` to send, again for a mix: a name such as "+
		"get, set, incr, or a template such as 'SET key:{key} {value}'")
	fl.StringArrayVar(&f.Ratios, "ratio", nil, "`share` of the command before it in a mix, again for each (default: "+
		"all alike); or SET:GET as in memtier_benchmark: 1:9")
	fl.StringVar(&f.Keys, "keys", "1m", "`number` of keys to draw from, or a range FROM-TO; k, m, g")
	fl.StringVar(&f.Dist, "key-distribution", "uniform", "`how` keys are drawn: uniform, zipf[:EXPONENT], latest, "+
		"gaussian, sequential")
	fl.StringVar(&f.KeyPrefix, "key-prefix", "", "`text` that follows slowpath: in each key, to tell loads apart")
	fl.StringVar(&f.Size, "value-size", "3", "`bytes` of values: 100, 100-1000, lognormal:MEDIAN,SIGMA, 100:3,1k:1, "+
		"file:PATH")
	fl.StringVar(&f.Data, "value-data", "random", "`what` values hold: random, compressible:SHARE%, zero, file:PATH")
	fl.DurationVar(&f.Expire, "expire", 0, "`time` to live of what SET writes (default none)")
	fl.BoolVar(&f.Dangerous, "dangerous", false, "allow commands that harm a server or the data of "+
		"others, and scripts on a server that holds keys")
}

func addReplayFlags(fl *pflag.FlagSet, f *benching.Replay) {
	fl.StringVar(&f.File, "replay", "", "`file` whose commands are sent: what redis-cli monitor printed (- is "+
		"stdin), or a recording")
	fl.StringVar(&f.Speed, "replay-speed", "1", "how much `faster` than the log: 1 is its own pace, 2 twice that; "+
		"max: as fast as connections and pipeline allow")
	fl.BoolVar(&f.RealKeys, "real-keys", false, "send the keys as the log has them, without slowpath: before them: "+
		"writes to the data of others, and removes nothing")
}

func addExperimentFlags(fl *pflag.FlagSet, f *benching.Experiment) {
	f.Given = fl
	fl.StringVar(&f.Sweep, "sweep", "", "a load at each of many values of a `setting`, and the knee: "+
		"connections=1..1000, pipeline=1,2,4,8, threads=…, rate=1000..100000/12, value-size=…")
	fl.StringVar(&f.FindMax, "find-max", "", "the highest rate of an open loop that holds a `limit`: 'p99<1ms and "+
		"errors<0.1%'")
	fl.IntVar(&f.Repeat, "repeat", 0, "`number` of loads that are the same: medians with intervals; with --sweep "+
		"loads per value (3), with --compare-targets rounds (6)")
	fl.StringVar(&f.Compare, "compare", "", "`file` of an earlier --repeat --json: says what got faster or slower, "+
		"and what noise explains")
	fl.BoolVar(&f.Targets, "compare-targets", false, "the same load on several TARGETs in turns, and one table: "+
		"servers, clusters, proxies. What each is shows by itself, or write standalone:, cluster: or proxy: before "+
		"HOST:PORT")
	fl.StringVar(&f.HTML, "html", "", "with --compare-targets: write the table with plots to this `file`, too, a page "+
		"for a browser")
	fl.DurationVar(&f.Warmup, "warmup", 500*time.Millisecond, "how long, before each load of these, one is made "+
		"that does not count")
	fl.StringVar(&f.Gain, "gain", "10%", "with --sweep: the knee is where twice as much gives less than this `share` "+
		"more throughput")
	fl.StringVar(&f.Precision, "precision", "5%", "with --find-max: how near, as a `share`, a rate that holds and "+
		"one that fails must be")
	fl.IntVar(&f.Confirm, "confirm", 3, "with --find-max: `number` of loads at the rate that holds and at that which "+
		"fails, of which most must agree")
}
