package main

import (
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/trace"
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
is a recording that was made with the tap: its calls pass the same filters and exports. Of several, one is
of the server's host and the others of hosts of its clients: calls that both ends saw are joined.

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
	fl.DurationVar(&f.duration, "for", 0, "how long to watch; 0: until Ctrl-C (default)")
	fl.IntVar(&f.count, "count", 0, "end after this many calls; 0: no limit")
	fl.StringVar(&f.slowText, "slow", cli.SlowAuto, "a call is slow from this `duration` on; auto: 5ms, of a "+
		"recording what it was made with")
	fl.BoolVar(&f.all, "all", false, "show the other calls too, all of them up to --sample")
	fl.StringVar(&f.sample, "sample", "2000/s", "show a part of the other calls where they are more than this `rate`")
	cli.Group(fl, "Which calls", func() {
		fl.StringSliceVar(&f.filter.Commands, "command", nil, "only these `commands`: GET,KEYS")
		fl.StringSliceVar(&f.filter.Clients, "client", nil, "only clients with this `part` in their address or "+
			"process: 10.0.0.7, checkout")
		fl.StringSliceVar(&f.filter.Nodes, "node", nil, "only calls to this `server`: HOST:PORT, HOST or :PORT")
		fl.StringSliceVar(&f.spent, "segment", nil, "only calls with this much time there: `ACTOR.STATE>5ms`; several "+
			"must all hold")
		fl.DurationVar(&f.filter.Min, "min", 0, "only calls of this `duration` or more")
		fl.DurationVar(&f.filter.Max, "max", 0, "only calls of this `duration` or less")
		f.processes.add(fl)
	})
	cli.Group(fl, "Limits", func() { addTapBudget(fl, &f.tapBudget) })
	fl.BoolVar(&f.each, "each", false, "a block for each call")
	fl.StringVar(&f.record, "record", "", "keep all that was seen in this recording `file`, which must not exist")
	fl.StringVar(&f.perfetto, "perfetto", "", "write the calls shown to this `file`, which must not exist, for "+
		"ui.perfetto.dev")
	fl.BoolVar(&f.asJSON, "json", false, "print "+trace.Schema+" documents, one per call")
	a.addressFlags(c)
	return c
}

// traceFlags are the flags of trace, and what they say once they are checked.
type traceFlags struct {
	duration                 time.Duration
	slowText                 string
	count                    int
	all, each, asJSON        bool
	sample, record, perfetto string
	spent                    []string
	filter                   trace.Filter
	processes                processFlags
	tapBudget                float64 // percent of a core

	slow      time.Duration // 0: auto
	tapPart   float64       // of a core, for the kernel programs; 0: no limit
	perSecond float64       // of the sample; 0 where none is wanted
}

// ofFile are the flags that have an effect on a recording.
var ofFile = []string{
	"slow", "all", "sample", "command", "client", "node", "segment", "min", "max", "each", "count",
	"perfetto", "json", "pid", "comm",
}

func (f *traceFlags) check(cmd *cobra.Command) error {
	var err error
	if f.slow, err = cli.ParseSlow(f.slowText); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{"for": f.duration, "min": f.filter.Min, "max": f.filter.Max} {
		if d < 0 {
			return cli.Usagef("--%s %v: must not be negative", name, d)
		}
	}
	rate, err := cli.ParseRate(f.sample)
	switch {
	case err != nil:
		return cli.Usagef("--sample %q: %w", f.sample, err)
	case f.all:
		f.perSecond = rate
	case cmd.Flags().Changed("sample"):
		return cli.Usagef("--sample has no effect without --all")
	}
	if f.tapPart, err = cli.TapBudget(f.tapBudget); err != nil {
		return err
	}
	if f.count < 0 {
		return cli.Usagef("--count %d: must not be negative", f.count)
	}
	if f.filter.Max > 0 && f.filter.Max < f.filter.Min {
		return cli.Usagef("--max %v is below --min %v: no call is so", f.filter.Max, f.filter.Min)
	}
	for _, text := range f.spent {
		s, err := trace.ParseCondition(text)
		if err != nil {
			return cli.Usagef("--segment %q: %w", text, err)
		}
		f.filter.Conditions = append(f.filter.Conditions, s)
	}
	return nil
}

func (a *app) runTrace(cmd *cobra.Command, f *traceFlags, args []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	files, err := recordingsOf(args)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		if err := onlyFor(cmd, ofFile...); err != nil {
			return err
		}
		f.filter.PID, f.filter.Comm = f.processes.PID, f.processes.Comm
	}
	if err := f.processes.check(cmd, len(files) == 0); err != nil {
		return err
	}
	t := &tracing{app: a, flags: f}
	if err := t.makeExport(); err != nil {
		return err
	}
	defer t.leaveExport()
	if len(files) > 0 {
		defer a.Scratch.Remove()
		a.InterruptEnds("not all calls were shown")
		if files, err = a.withCaptures(cmd.Context(), files); err != nil {
			return err
		}
		return t.replay(files)
	}
	nodes, notes, err := a.traced(cmd, f.processes.PID, args)
	if err != nil {
		return err
	}
	return t.live(cmd.Context(), nodes, notes)
}
