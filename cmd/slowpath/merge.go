package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/results"
)

func (a *app) merge() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "merge FILE FILE... | DIRECTORY",
		Short: "Add up the results of a load that several machines made",
		Long: `merge adds up results of bench, made by --json or --record: latencies exactly, call by call, and
rates over the time that all had in common. It names what makes the sum other than that of one load: windows that do
not overlap, other settings or targets, a part that its generator limited. Of a directory it takes all files that end
in .json or .slowpath. docs/scale.md shows a whole run.

It exits with 1 when the parts had no time in common.`,
		Example: `  slowpath bench 10.0.0.5:6379 --start-at 2026-11-21T18:00:00Z --seed 1 --json > a.json   # on host 1
  slowpath bench 10.0.0.5:6379 --start-at 2026-11-21T18:00:00Z --seed 2 --json > b.json   # on host 2
  slowpath merge a.json b.json
  slowpath merge /results   # of an Indexed Job`,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := resultFiles(args)
			if err != nil {
				return cli.Usage(err)
			}
			if len(paths) < 2 {
				return cli.Usagef("%s adds up two results or more, not %d; see: %s --help", cmd.CommandPath(),
					len(paths), cmd.CommandPath())
			}
			return a.runMerge(paths, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a "+bench.Schema+" document")
	return c
}

// mostResults bounds the files of a directory.
const mostResults = 10_000

// resultFiles are the files that are named, and those of the directories that are.
func resultFiles(args []string) (paths []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			paths = append(paths, arg) // what is wrong with a file is said when it is read
			continue
		}
		files, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		if len(files) > mostResults {
			return nil, fmt.Errorf("%s has %d files: merge takes at most %d", arg, len(files), mostResults)
		}
		for _, f := range files {
			if end := filepath.Ext(f.Name()); f.Type().IsRegular() && (end == ".json" || end == ".slowpath") {
				paths = append(paths, filepath.Join(arg, f.Name()))
			}
		}
	}
	return paths, nil
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
