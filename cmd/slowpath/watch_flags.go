package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/source/tap"
)

// watchFlags are the flags of doctor and record that shape a watch.
type watchFlags struct {
	duration  time.Duration
	slow      string
	noProbe   bool
	noHost    bool
	noTap     bool
	resolve   bool
	probeRate string
	timeout   time.Duration
	maxDisk   int64
	// of the tap, at a time
	connections int
	tapBudget   float64 // percent of a core
	end         string
	processes   processFlags
	profile     profileFlags
}

func (w *watchFlags) add(c *cobra.Command, duration time.Duration) {
	f := c.Flags()
	note := ""
	if duration == 0 {
		note = " (default)"
	}
	f.DurationVar(&w.duration, "for", duration, "how long to watch; 0: until Ctrl-C"+note)
	f.StringVar(&w.slow, "slow", cli.SlowAuto, "a call is slow from this `duration` on; auto: 5ms, more on a "+
		"distant path")
	addResolve(f, &w.resolve)
	cli.Group(f, "Whose calls", func() {
		w.processes.add(f)
		addEnd(f, &w.end)
	})
	cli.Group(f, "Applications, and where CPU time goes", func() { w.profile.add(f) })
	cli.Group(f, "What to leave out", func() {
		f.BoolVar(&w.noProbe, "no-probe", false, "make no calls of our own")
		f.BoolVar(&w.noHost, "no-host", false, "read no files of this host")
		f.BoolVar(&w.noTap, "no-tap", false, "leave the tap (eBPF) out")
	})
	cli.Group(f, "Limits", func() { w.addLimits(f) })
}

func (w *watchFlags) addLimits(f *pflag.FlagSet) {
	f.StringVar(&w.probeRate, "probe-rate", "", "`calls` per second and node, e.g. 10/s (default 50/s, less on "+
		"clusters of many nodes); at most one in two round trips")
	f.DurationVar(&w.timeout, "timeout", source.DefaultTimeout, "for the first connection")
	f.Int64Var(&w.maxDisk, "max-disk", recording.DefaultMaxDisk, "bound of the recording in `bytes`; the oldest "+
		"and most frequent rows are thinned first, slow calls last")
	addTapBudget(f, &w.tapBudget)
	f.IntVar(&w.connections, "tap-connections", tap.DefaultConnections, "ends of connections that the tap follows at "+
		"a time; each that is open takes 10 KiB of the kernel's memory, and each of this number 0.3 KiB")
}

func addResolve(f *pflag.FlagSet, resolve *bool) {
	f.BoolVar(resolve, "resolve", false, "ask DNS for the names of hosts that call; without it they are those of "+
		"/etc/hosts")
}

func addEnd(f *pflag.FlagSet, end *string) {
	f.StringVar(end, "end", "", "see only this `end` of connections, client or server: agents in namespaces of one "+
		"kernel would see both, and each other's calls twice")
}

func addTapBudget(f *pflag.FlagSet, percent *float64) {
	f.Float64Var(percent, "tap-budget", tap.DefaultBudget*100, "CPU time of the tap's kernel programs, in "+
		"`percent` of a core: where all calls would take more, a part of the connections is followed; 0: no limit")
}

// options checks the flags.
func (w *watchFlags) options() (source.Options, error) {
	o := source.Options{
		For: w.duration, Slow: w.slow, Version: version, NoProbe: w.noProbe, NoHost: w.noHost,
		NoTap: w.noTap, Timeout: w.timeout, Processes: w.processes.ProcessFilter, Connections: w.connections,
		Resolve: w.resolve, MainThreads: true, End: w.end,
	}
	if err := cli.NotNegative("for", w.duration); err != nil {
		return o, err
	}
	if err := cli.Positive("timeout", w.timeout); err != nil {
		return o, err
	}
	if err := cli.CheckEnd(w.end); err != nil {
		return o, err
	}
	if w.noTap && w.processes.ProcessFilter != (tap.ProcessFilter{}) {
		return o, cli.Usagef("%s is for the tap: leave --no-tap out", w.processes)
	}
	if w.connections < 1 || w.connections > tap.MaxConnections {
		return o, cli.Usagef("--tap-connections %d: give a number from 1 to %d", w.connections, tap.MaxConnections)
	}
	var err error
	if o.TapBudget, err = cli.TapBudget(w.tapBudget); err != nil {
		return o, err
	}
	if _, err := cli.ParseSlow(w.slow); err != nil {
		return o, err
	}
	if w.probeRate != "" {
		rate, err := cli.ParseRate(w.probeRate)
		if err != nil {
			return o, cli.Usagef("--probe-rate %q: %w", w.probeRate, err)
		}
		o.ProbeRate = rate
	}
	return o, w.profile.fill(&o)
}

// watched checks the flags, and finds the servers that are watched.
func (a *app) watched(cmd *cobra.Command, w *watchFlags, args []string) (source.Options, error) {
	o, err := w.options()
	if err != nil {
		return o, err
	}
	if err := w.processes.check(cmd, true); err != nil {
		return o, err
	}
	if args, err = a.ServerOf(cmd, w.processes.PID, args); err != nil {
		return o, err
	}
	o.Targets, err = a.Targets(cmd.Context(), args)
	o.Cluster = a.Where.Cluster
	return o, err
}
