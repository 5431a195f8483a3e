//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/lab/random"
	"slowpath/internal/lab/servers"
	"slowpath/internal/outfile"
)

// randomFlags are the flags of lab grade --random.
type randomFlags struct {
	runs      int
	seed      uint64
	dirs      []string
	judgeOnly bool
	markdown  string
	calibrate string
}

func (f *randomFlags) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.runs, "random", 0, "make this `number` of drawn scenarios instead of those of lab list")
	fl.Uint64Var(&f.seed, "seed", 0, "`seed` of the first drawn scenario; the next one's is one more (default 0)")
	fl.StringArrayVar(&f.dirs, "dir", nil, "keep recordings and results of drawn scenarios in this `directory`; what "+
		"it has is not made again (with --judge-only and --markdown repeatable: a series each)")
	fl.BoolVar(&f.judgeOnly, "judge-only", false, "judge the recordings in --dir again, and make none; without "+
		"--random all that it has")
	fl.StringVar(&f.calibrate, "calibration", "", "write how often findings were right to this `file`, from which "+
		"slowpath takes its confidence (internal/diagnose/verdict/calibration.json)")
	fl.StringVar(&f.markdown, "markdown", "", "write what drawn scenarios show to this `file`, as docs/accuracy.md")
}

// flagsOfRandom are those that only --random has.
var flagsOfRandom = []string{"seed", "dir", "judge-only", "markdown", "calibration"}

// check refuses flags that do not go together.
func (f randomFlags) check(changed func(string) bool, asJSON bool) error {
	for _, other := range []string{"only", "keep", "runs", "doctor-arg"} {
		if changed(other) {
			return cli.Usagef("--%s does not go with --random, which draws all of it", other)
		}
	}
	several := len(f.dirs) > 1
	switch {
	case changed("random") && f.runs < 1:
		return cli.Usagef("--random %d: give at least 1", f.runs)
	case !changed("random") && changed("seed"):
		return cli.Usagef("--seed needs --random, the number of scenarios")
	case f.judgeOnly && len(f.dirs) == 0:
		return cli.Usagef("--judge-only needs the --dir with the recordings")
	case several && (!f.judgeOnly || f.markdown == "" && f.calibrate == "" || asJSON):
		return cli.Usagef("several --dir are for --judge-only with --markdown or --calibration, without --json")
	}
	return nil
}

// gradeRandom makes drawn scenarios.
func (a *app) gradeRandom(cmd *cobra.Command, f gradeFlags) error {
	if err := f.random.check(cmd.Flags().Changed, f.asJSON); err != nil {
		return err
	}
	if _, err := a.openLab(cmd.Context(), f.server, a.Stderr); err != nil {
		return err
	}
	var only servers.Name
	if cmd.Flags().Changed("server") {
		only = servers.Name(f.server)
	}
	dirs := f.random.dirs
	if len(dirs) == 0 {
		dir, err := os.MkdirTemp("", "slowpath-random-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		dirs = []string{dir}
	}
	var reports []random.Report
	for _, dir := range dirs {
		report, err := a.playSeries(cmd.Context(), f.random, dir, only)
		if err != nil {
			return err
		}
		reports = append(reports, report)
		if err := a.printGrades(report, report.Passed(), f.asJSON); err != nil {
			return err
		}
	}
	if f.random.calibrate != "" {
		if err := outfile.Write(f.random.calibrate, func(w io.Writer) error {
			return random.WriteCalibration(w, reports)
		}); err != nil {
			return err
		}
	}
	if f.random.markdown == "" {
		return nil
	}
	return outfile.Write(f.random.markdown, func(w io.Writer) error {
		return random.Markdown(w, reports, f.random.command())
	})
}

// playSeries makes or judges the series of a directory.
func (a *app) playSeries(ctx context.Context, f randomFlags, dir string, only servers.Name) (random.Report, error) {
	if err := outfile.Directory(dir); err != nil {
		return random.Report{}, fmt.Errorf("--dir: %w", err)
	}
	exe, err := slowpath()
	if err != nil {
		return random.Report{}, err
	}
	if f.runs == 0 {
		if f.seed, f.runs, err = random.Kept(dir); err != nil {
			return random.Report{}, cli.Usagef("--dir: %w", err)
		}
	}
	runs, err := random.Series{
		Dir: dir, Seed: f.seed, N: f.runs, Server: only, Version: version, JudgeOnly: f.judgeOnly,
		Record: random.RecordProcess(exe), Done: func(run random.Run) { a.made(run) },
	}.Play(a.steps(ctx, "the run is undone; the results so far follow"))
	a.ProgressDone()
	if err != nil {
		return random.Report{}, err
	}
	if ctx.Err() != nil {
		goOn := "with --dir a series can be continued"
		if len(f.dirs) > 0 {
			goOn = fmt.Sprintf("to go on: slowpath lab grade --random %d --seed %d --dir %s", f.runs, f.seed, dir)
			if only != "" {
				goOn += " --server " + string(only)
			}
		}
		a.Say(fmt.Sprintf("interrupted after %d of %d runs; %s", len(runs), f.runs, goOn))
	}
	return random.Summarise(runs, f.seed, f.runs, version), nil
}

// command judges the series again, and writes the same document. It has no directories of this machine.
func (f randomFlags) command() string {
	text := "slowpath lab grade --judge-only"
	if f.runs > 0 {
		text = fmt.Sprintf("slowpath lab grade --random %d --seed %d --judge-only", f.runs, f.seed)
	}
	for _, dir := range f.dirs {
		text += " --dir " + filepath.Base(dir)
	}
	file := f.markdown
	if !filepath.IsLocal(file) {
		file = filepath.Base(file)
	}
	return text + " --markdown " + file
}
