package main

import (
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"slowpath/internal/diagnose/compare"
	"slowpath/internal/report"
)

func (a *app) compare() *cobra.Command {
	var asJSON bool
	var notable float64
	c := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "What changed between two recordings: latency, causes, callers, settings",
		Long: `compare holds two recordings against each other, such as before and after a fix: how long calls took,
which causes are gone or new, where the time of slow calls went, who called, and which versions and settings differ.
Each watch is divided into 20 parts; a difference is shown where the Mann-Whitney U test and the shift of Hodges and
Lehmann say so, with 5 % for all metrics together.

Exit codes: 0 better, or no notable difference; 1 worse: p50, p99 or the share of slow calls, by --notable or more;
2 usage, and where the two have no calls that can be compared.`,
		Example: `  slowpath compare before.slowpath after.slowpath
  slowpath compare before.slowpath after.slowpath --notable 0.3 --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("compare needs two recordings: slowpath compare BEFORE AFTER")
			}
			if notable < 0 || notable > 1e6 {
				return usagef("--notable %v: it is a share, such as 0.1 for 10 %%", notable)
			}
			return a.compareFiles(args, notable, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+compare.Schema)
	c.Flags().Float64Var(&notable, "notable", compare.Notable, "least change of a latency that counts, as a `share`")
	return c
}

func (a *app) compareFiles(paths []string, notable float64, asJSON bool) error {
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	var sides [2]compare.Side
	var names [2]string
	a.interruptEnds("nothing was compared")
	for i, path := range paths {
		rec, _, err := a.openRecordings([]string{path}, false)
		if err != nil {
			return err
		}
		names[i] = filepath.Base(path)
		done := a.working("judging %s: %d calls and %d events", names[i], len(rec.Calls), rec.EventCount())
		sides[i] = compare.SideOf(rec, version)
		done()
	}
	c := compare.Of(sides[0], sides[1], names, notable)
	switch c.Verdict {
	case compare.Worse:
		a.code = exitFindings
	case compare.Unknown:
		a.code = exitUsage
	}
	if asJSON {
		return report.CompareJSON(a.stdout, c)
	}
	return report.Compare(a.stdout, c, a.style())
}
