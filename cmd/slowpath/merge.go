package main

import (
	"slices"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/results"
)

func (a *app) merge() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "merge FILE FILE...",
		Short: "Add up the results of a load that several machines made",
		Long: `merge adds up results of bench, made by --json or --record: latencies exactly, call by call, and
rates over the time that all had in common. It names what makes the sum other than that of one load: windows that do
not overlap, other settings or targets, a part that its generator limited. docs/scale.md shows a whole run.

It exits with 1 when the parts had no time in common.`,
		Example: `  slowpath bench 10.0.0.5:6379 --start-at 2026-11-21T18:00:00Z --seed 1 --json > a.json   # on host 1
  slowpath bench 10.0.0.5:6379 --start-at 2026-11-21T18:00:00Z --seed 2 --json > b.json   # on host 2
  slowpath merge a.json b.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("%s adds up two results or more, not %d; see: %s --help", cmd.CommandPath(),
					len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.runMerge(args, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a "+bench.Schema+" document")
	return c
}

func (a *app) runMerge(paths []string, asJSON bool) error {
	a.InterruptEnds("nothing was merged")
	var parts []bench.Named
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return cli.Usagef("%s is named twice: leave it out once", path)
		}
		r, err := a.Result(path)
		if err != nil {
			return err
		}
		parts = append(parts, bench.Named{Name: path, Result: r})
	}
	r, err := bench.Merge(parts)
	if err != nil {
		return cli.Usage(err)
	}
	if r.RequestsPerSecond == 0 {
		a.Code = cli.ExitFindings
	}
	if asJSON {
		return results.LoadJSON(a.Stdout, r)
	}
	return results.Load(a.Stdout, r, a.Style())
}
