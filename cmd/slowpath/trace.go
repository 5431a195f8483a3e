package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
	"slowpath/internal/tracing"
)

func (a *app) trace() *cobra.Command {
	var f traceFlags
	c := &cobra.Command{
		Use:   "trace [TARGET...|FILE...]",
		Short: "The calls that the kernel sees, live: the slow ones, each with where its time went",
		Long: `trace shows each slow call to a server as it happens: whose it was, where its time went, and what it
waited for, down to the command and the client that held the server up. The tap (eBPF) sees the calls of
all clients on this host, and of all clients of the servers on this host; nobody is asked anything. Calls that
waited for the same thing share a block (--each: one for each call).

A TARGET is HOST:PORT or a redis:// URL. Without one, trace watches every server that listens on this host. A FILE
is a recording that was made with the tap: its calls pass the same filters and exports. Several FILEs are recordings
of the server's host and of its clients' hosts: calls that both ends saw are joined.

With --all, every call is shown while there are no more than --sample of them per second, slow or not; the
summary says how many of how many were shown. A recording has those that the tap kept: trace --all --record keeps all.

Ctrl-C ends it with a summary. Exit codes: 0 whatever was seen (doctor judges), 2 usage, 3 a name that cannot be
resolved, 4 a privilege or kernel feature is missing, 70 anything else.`,
		Example: `  slowpath trace                               # every server of this host
  slowpath trace 10.0.0.5:6379 --slow 20ms --for 1m
  slowpath trace --segment 'server.busy>5ms'   # calls that waited for others
  slowpath trace --command GET,MGET --client checkout --json
  slowpath trace --for 10s --perfetto calls.json   # for ui.perfetto.dev
  slowpath trace --all --each --record all.slowpath   # all calls, fast ones too
  slowpath trace night.slowpath --min 100ms --comm checkout
  slowpath trace app-host.slowpath redis-host.slowpath --segment 'network>5ms'`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTrace(cmd, &f, args) },
	}
	fl := c.Flags()
	fl.DurationVar(&f.Duration, "for", 0, "how long to watch; 0: until Ctrl-C (default)")
	fl.IntVar(&f.Count, "count", 0, "end after this many calls; 0: no limit")
	fl.StringVar(&f.Slow, "slow", cli.SlowAuto, "a call is slow from this `duration` on; auto: 5ms, of a recording "+
		"what it was made with")
	fl.BoolVar(&f.All, "all", false, "show the other calls too, all of them up to --sample")
	fl.StringVar(&f.Sample, "sample", "2000/s", "show a part of the other calls where they are more than this `rate`")
	cli.Group(fl, "Which calls", func() {
		fl.StringSliceVar(&f.Filter.Commands, "command", nil, "only these `commands`: GET,KEYS")
		fl.StringSliceVar(&f.Filter.Clients, "client", nil, "only clients with this `part` in their address or "+
			"process: 10.0.0.7, checkout")
		fl.StringSliceVar(&f.Filter.Nodes, "node", nil, "only calls to this `server`: HOST:PORT, HOST or :PORT")
		fl.StringSliceVar(&f.Segments, "segment", nil, "only calls with this much time there: `ACTOR.STATE>5ms`; "+
			"several must all hold")
		fl.DurationVar(&f.Filter.Min, "min", 0, "only calls of this `duration` or more")
		fl.DurationVar(&f.Filter.Max, "max", 0, "only calls of this `duration` or less")
		f.processes.add(fl)
	})
	cli.Group(fl, "Limits", func() { addTapBudget(fl, &f.TapBudget) })
	fl.BoolVar(&f.Each, "each", false, "a block for each call")
	fl.StringVar(&f.Record, "record", "", "keep all that was seen in this recording `file`, which must not exist")
	fl.StringVar(&f.Perfetto, "perfetto", "", "write the calls shown to this `file`, which must not exist, for "+
		"ui.perfetto.dev")
	fl.BoolVar(&f.AsJSON, "json", false, "print "+trace.Schema+" documents, one per call")
	a.addressFlags(c)
	return c
}

// traceFlags are the flags of trace.
type traceFlags struct {
	tracing.Options
	processes processFlags
}

// ofFile are the flags that have an effect on a recording.
var ofFile = []string{
	"slow", "all", "sample", "command", "client", "node", "segment", "min", "max", "each", "count",
	"perfetto", "json", "pid", "comm",
}

// runTrace checks the flags of a trace, and makes it.
func (a *app) runTrace(cmd *cobra.Command, f *traceFlags, args []string) error {
	if err := f.Check(cmd.Flags().Changed); err != nil {
		return err
	}
	files, err := named.Files(args)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		if err := onlyFor(cmd, ofFile...); err != nil {
			return err
		}
	}
	if err := f.processes.check(cmd, len(files) == 0); err != nil {
		return err
	}
	f.Processes = f.processes.ProcessFilter
	return tracing.Run(cmd.Context(), a.CommandLine, &f.Options, files, func() ([]tap.Node, []string, error) {
		return a.Traced(cmd, f.Processes.PID, args)
	})
}
