package main

import (
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/watching"
)

func (a *app) compare() *cobra.Command {
	t := watching.TwoWatches{Comparison: watching.Comparison{CommandLine: a.CommandLine}}
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare BEFORE AFTER | --live [TARGET...]",
		Short: "What changed between two recordings, or two watches: latency, causes, callers, settings",
		Long: `compare holds two recordings against each other, such as before and after a fix: how long calls took,
which causes are gone or new, where the time of slow calls went, who called, and which versions and settings differ.
Each watch is divided into 20 parts; a difference is shown where the Mann-Whitney U test and the shift of Hodges and
Lehmann say so, with 5 % for all metrics together.

With --live it makes both: it watches the TARGETs as doctor does, waits until the fix is in, watches again with the
same options, and compares. The fix is in once you press Enter, or once the COMMAND of --run has ended, which runs as
you and not as root under sudo, or after --wait. --keep has both recordings in a directory. Ctrl-C during the second
watch ends it early and compares what was seen; before, it gives the verdict of the first watch alone.

Exit codes: 0 better, or no notable difference; 1 worse: p50, p99, the share of slow calls, by --notable or more, or
calls that fail; 2 usage, and where there is nothing to compare; with --live also 3 cannot connect or log in. With
--live where there is no second watch, the verdict of the first is printed, as doctor prints it.`,
		Example: `  slowpath compare before.slowpath after.slowpath
  slowpath compare before.slowpath after.slowpath --notable 0.3 --json
  slowpath compare --live 10.0.0.5:6379 --keep fixed   # press Enter once the fix is in
  slowpath compare --live 127.0.0.1:6379 --for 1m --run 'redis-cli config set appendfsync everysec'
  slowpath compare --live 10.0.0.5:6379 --wait 5m --json   # somebody else deploys meanwhile`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.Notable < 0 || t.Notable > 1e6 {
				return cli.Usagef("--notable %v: it is a share, such as 0.1 for 10 %%", t.Notable)
			}
			if f.live {
				return a.compareLive(cmd, &t, &f, args)
			}
			if len(args) != 2 {
				return cli.Usagef("compare needs two recordings: slowpath compare BEFORE AFTER; or a server, " +
					"which it watches before and after a fix: slowpath compare --live HOST:PORT")
			}
			if err := onlyFor(cmd, "json", "notable"); err != nil {
				return err
			}
			return t.Files(args[0], args[1])
		},
	}
	fl := c.Flags()
	fl.BoolVar(&t.AsJSON, "json", false, "print "+compare.Schema)
	fl.Float64Var(&t.Notable, "notable", compare.Notable, "least change of a latency that counts, as a `share`")
	fl.BoolVar(&f.live, "live", false, "watch servers, before a fix and after it")
	fl.StringVar(&t.Fix.Run, "run", "", "with --live: the fix is this `command` of a shell; it runs as the caller of "+
		"sudo")
	fl.DurationVar(&t.Fix.Wait, "wait", 0, "with --live: the fix is in after this time, counted from the end of --run")
	fl.StringVar(&t.Keep, "keep", "", "with --live: keep before.slowpath and after.slowpath in this `directory`")
	f.watch.add(c, 30*time.Second)
	fl.StringVar(&f.into, "into", "", "make one of the two watches into this `file`")
	_ = fl.MarkHidden("into") // the flag exists
	a.targetFlags(c)
	return c
}

// compareFlags are those of compare --live.
type compareFlags struct {
	live  bool
	watch watchFlags
	into  string // of a process that makes one of the watches: its recording
}

// compareLive refuses what cannot be met before anything is watched.
func (a *app) compareLive(cmd *cobra.Command, t *watching.TwoWatches, f *compareFlags, args []string) error {
	t.MaxDisk, t.Given = f.watch.maxDisk, cmd.Flags()
	if f.into != "" {
		if t.Keep == "" {
			a.Scratch.Adopt(filepath.Dir(f.into))
		}
		o, err := a.watched(cmd, &f.watch, args)
		if err != nil {
			return err
		}
		into := watching.File{Path: f.into, MaxDisk: t.MaxDisk}
		return watching.Record(cmd.Context(), a.CommandLine, o, into, "")
	}
	files, err := named.Files(args)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return cli.Usagef("%s is a file, and --live watches servers: leave --live out, or write HOST:PORT", files[0])
	}
	if err := t.Fix.Check(cmd.Flags().Changed, a.Stdin); err != nil {
		return err
	}
	o, err := f.watch.options()
	if err != nil {
		return err
	}
	if o.For == 0 {
		return cli.Usagef("--for 0: the first watch would not end before Ctrl-C: give a duration such as 30s")
	}
	if err := f.watch.processes.check(cmd, true); err != nil {
		return err
	}
	return t.Make(cmd.Context(), args)
}
