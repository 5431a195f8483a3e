//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/lab/random"
	"slowpath/internal/lab/servers"
)

// randomFlags are the flags of lab grade --random.
type randomFlags struct {
	runs      int
	seed      uint64
	dir       string
	judgeOnly bool
}

func (f *randomFlags) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.runs, "random", 0, "make this `number` of random scenarios instead of the incidents")
	fl.Uint64Var(&f.seed, "seed", 0, "`seed` of the first random scenario; the next one's is one more (default 0)")
	fl.StringVar(&f.dir, "dir", "", "keep recordings and results of random scenarios in this `directory`; what it "+
		"has is not made again")
	fl.BoolVar(&f.judgeOnly, "judge-only", false, "judge the recordings in --dir again, and make none")
}

// gradeRandom makes random scenarios.
func (a *app) gradeRandom(cmd *cobra.Command, f gradeFlags) error {
	r := f.random
	for _, other := range []string{"only", "keep", "runs", "doctor-arg"} {
		if cmd.Flags().Changed(other) {
			return usagef("--%s does not go with --random, which draws all of it", other)
		}
	}
	switch {
	case r.runs < 1:
		return usagef("--random %d: give at least 1", r.runs)
	case r.judgeOnly && r.dir == "":
		return usagef("--judge-only needs the --dir with the recordings")
	}
	dir, keep := r.dir, r.dir != ""
	var err error
	if keep {
		err = os.MkdirAll(dir, 0o755)
	} else {
		dir, err = os.MkdirTemp("", "slowpath-random-")
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	if _, err := a.openLab(cmd.Context(), f.server, a.stderr); err != nil {
		return err
	}
	var only servers.Name
	if cmd.Flags().Changed("server") {
		only = servers.Name(f.server)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	runs, err := random.Series{
		Dir: dir, Seed: r.seed, N: r.runs, Server: only, Version: version, JudgeOnly: r.judgeOnly,
		Record: random.RecordProcess(exe), Done: func(run random.Run) { random.Line(a.stderr, run) },
	}.Play(cmd.Context())
	if err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		goOn := "with --dir a series can be continued"
		if keep {
			goOn = fmt.Sprintf("to go on: slowpath lab grade --random %d --seed %d --dir %s", r.runs, r.seed, dir)
			if only != "" {
				goOn += " --server " + f.server
			}
		}
		fmt.Fprintf(a.stderr, "interrupted after %d of %d runs; %s\n", len(runs), r.runs, goOn)
	}
	return a.printRandom(random.Summarise(runs, r.seed, r.runs, version), f.asJSON)
}

// printRandom prints the results. The exit code says whether all verdicts were right that have all sources.
func (a *app) printRandom(report random.Report, asJSON bool) error {
	best := report.Tiers["T2"]
	if report.FirstNamed < best.FaultRuns || best.HealthyKept.Count < best.HealthyRuns || report.Failed > 0 {
		a.code = exitFindings
	}
	if !asJSON {
		random.Table(a.stdout, report)
		return nil
	}
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
