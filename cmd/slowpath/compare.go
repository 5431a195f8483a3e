package main

import (
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/report"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	asJSON  bool
	notable float64
	live    liveFlags
}

func (a *app) compare() *cobra.Command {
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
			if f.notable < 0 || f.notable > 1e6 {
				return cli.Usagef("--notable %v: it is a share, such as 0.1 for 10 %%", f.notable)
			}
			if f.live.on {
				return a.compareLive(cmd, &f, args)
			}
			if len(args) != 2 {
				return cli.Usagef("compare needs two recordings: slowpath compare BEFORE AFTER; or a server, " +
					"which it watches before and after a fix: slowpath compare --live HOST:PORT")
			}
			if err := onlyFor(cmd, "json", "notable"); err != nil {
				return err
			}
			return a.compareFiles(args, &f)
		},
	}
	c.Flags().BoolVar(&f.asJSON, "json", false, "print "+compare.Schema)
	c.Flags().Float64Var(&f.notable, "notable", compare.Notable, "least change of a latency that counts, as a `share`")
	f.live.add(c)
	a.targetFlags(c)
	return c
}

func (a *app) compareFiles(paths []string, f *compareFlags) error {
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	var sides [2]compare.Side
	a.InterruptEnds("nothing was compared")
	for i, path := range paths {
		var err error
		if sides[i], err = a.sideOf(path); err != nil {
			return err
		}
	}
	return a.compareSides(sides, [2]string{filepath.Base(paths[0]), filepath.Base(paths[1])}, f)
}

// sideOf judges one of two recordings.
func (a *app) sideOf(path string) (compare.Side, error) {
	rec, err := a.Recordings([]string{path}, false)
	if err != nil {
		return compare.Side{}, err
	}
	defer a.Working("judging %s: %d calls and %d events", filepath.Base(path), len(rec.Calls), rec.EventCount())()
	return compare.SideOf(rec, version), nil
}

// compareSides prints the comparison and sets the exit code.
func (a *app) compareSides(sides [2]compare.Side, names [2]string, f *compareFlags) error {
	c := compare.Of(sides[0], sides[1], names, f.notable)
	switch c.Verdict {
	case compare.Worse:
		a.Code = cli.ExitFindings
	case compare.Unknown:
		a.Code = cli.ExitUsage
	}
	if f.asJSON {
		return report.CompareJSON(a.Stdout, c)
	}
	return report.Compare(a.Stdout, c, a.Style())
}
