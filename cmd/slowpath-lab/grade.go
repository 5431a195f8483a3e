//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/outfile"
	"slowpath/internal/report/layout"
)

// gradeFlags are the flags of lab grade.
type gradeFlags struct {
	server, only, keep string
	runs               int
	asJSON, apps       bool
	fixes              applyFlags
	doctorArgs         []string
	random             randomFlags
}

func (a *app) gradeCommand() *cobra.Command {
	var f gradeFlags
	c := &cobra.Command{
		Use:   "grade",
		Short: "Make all scenarios and healthy loads, and count the right verdicts",
		Long: `grade makes every scenario and every healthy load, asks doctor, and compares the first finding with the
cause.

With --apply-fix it carries out what doctor advises in each scenario, and watches again.

With --apps it runs the real applications of lab apps instead: each healthy, directly and behind proxies, then beside
faults.

With --random it draws servers, callers, faults and their strengths instead; the seed decides all of it. Each run
switches the faults on and off again and again, and measures at the callers what each fault costs them: what costs
nothing is not part of the truth. Then it records the callers with all faults on, and judges the recording with all
sources (T2), without the tap (T1), and with a connection alone (T0). A run takes about half a minute.

With --dir each run is kept: the same command goes on where it was interrupted.`,
		Example: `  slowpath lab grade --runs 3 --only healthy-idle,slow-command
  slowpath lab grade --apps --only app-celery
  slowpath lab grade --random 20 --seed 1 --dir random --json
  slowpath lab grade --dir random --judge-only --markdown accuracy.md`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("random") || cmd.Flags().Changed("judge-only") {
				return a.gradeRandom(cmd, f)
			}
			if slices.ContainsFunc(flagsOfRandom, cmd.Flags().Changed) {
				return cli.Usagef("--%s are for --random", strings.Join(flagsOfRandom, ", --"))
			}
			if f.apps {
				return a.gradeApps(cmd.Context(), f)
			}
			if f.fixes.apply {
				f.fixes.server, f.fixes.asJSON = f.server, f.asJSON
				return a.gradeFixes(cmd.Context(), f.only, f.fixes)
			}
			if f.fixes != (applyFlags{}) {
				return cli.Usagef("--all-steps and --proofs are for --apply-fix")
			}
			return a.grade(cmd.Context(), f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.server, "server", defaultServer, "server `version`, see lab servers; with --random the only one "+
		"that is drawn, instead of any")
	fl.StringArrayVar(&f.doctorArgs, "doctor-arg", nil, "pass this `argument` to doctor, e.g. --no-host (repeatable)")
	fl.StringVar(&f.keep, "keep", "", "keep the recording of each run in this `directory`")
	fl.StringVar(&f.only, "only", "", "make these `scenarios` only, separated by commas")
	fl.IntVar(&f.runs, "runs", 1, "make each scenario this often")
	fl.BoolVar(&f.asJSON, "json", false, "print "+grade.Schema+", with --apps "+grade.AppsSchema+", with --apply-fix "+
		grade.FixesSchema)
	fl.BoolVar(&f.apps, "apps", false, "run the applications of lab apps instead: each healthy, directly and behind "+
		"proxies, then beside faults, judged at T2, T1 and T0; --only takes names of applications too")
	cli.Group(fl, "Fixes", func() { f.fixes.add(fl) })
	cli.Group(fl, "Drawn scenarios", func() { f.random.add(fl) })
	return c
}

func (a *app) grade(ctx context.Context, f gradeFlags) error {
	scenarios, err := choose(f.only)
	if err != nil {
		return err
	}
	if f.runs < 1 {
		return cli.Usagef("--runs %d: give at least 1", f.runs)
	}
	grader, err := a.grader(ctx, f)
	if err != nil {
		return err
	}
	if f.keep != "" {
		if err := outfile.Directory(f.keep); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
	}
	var results []grade.Result
	for r := range grader.Scenarios(a.grading(ctx), scenarios, f.runs) {
		a.made(r)
		results = append(results, r)
	}
	a.stopped(len(results), f.runs*len(scenarios))
	s := grade.Summarise(results)
	return a.printGrades(s, s.Passed(), f.asJSON)
}

// gradeApps runs the applications that the flags name.
func (a *app) gradeApps(ctx context.Context, f gradeFlags) error {
	chosen, err := named(f.only, scenario.AppScenarios(), func(name string) ([]scenario.AppScenario, error) {
		found := scenario.AppScenariosOf(name)
		if len(found) == 0 {
			return nil, cli.Usagef("no application or scenario of one %q; see: slowpath lab apps", name)
		}
		return found, nil
	})
	if err != nil {
		return err
	}
	if f.runs != 1 || len(f.doctorArgs) > 0 {
		return cli.Usagef("--runs and --doctor-arg have no effect with --apps: leave them out")
	}
	grader, err := a.grader(ctx, f)
	if err != nil {
		return err
	}
	if f.keep == "" {
		if grader.Keep, err = a.Scratch.Make(""); err != nil {
			return fmt.Errorf("making a place for recordings: %w; set TMPDIR, or give --keep DIRECTORY", err)
		}
		defer a.Scratch.Remove()
	}
	if err := outfile.Directory(grader.Keep); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	var results []grade.AppResult
	for r := range grader.Apps(a.grading(ctx), chosen) {
		a.made(r)
		results = append(results, r)
	}
	a.stopped(len(results), len(chosen))
	s := grade.SummariseApps(results)
	return a.printGrades(s, s.Passed(), f.asJSON)
}

// grader removes the leftovers of dead labs first.
func (a *app) grader(ctx context.Context, f gradeFlags) (g grade.Grader, err error) {
	if _, err := a.openLab(ctx, f.server, a.Stderr); err != nil {
		return g, err
	}
	exe, err := slowpath()
	return grade.Grader{
		Server: servers.Name(f.server), Doctor: grade.DoctorProcess(exe), Args: f.doctorArgs, Keep: f.keep,
	}, err
}

func (a *app) grading(ctx context.Context) context.Context {
	return a.steps(ctx, "the run is undone; the results so far follow")
}

// made says what came of a run.
func (a *app) made(r interface{ Line(w io.Writer) }) {
	a.ProgressDone()
	r.Line(a.Stderr)
}

// stopped says that Ctrl-C came before all runs were made, if it did.
func (a *app) stopped(made, of int) {
	a.ProgressDone()
	if made < of {
		a.Code = cli.ExitInterrupted
		fmt.Fprintf(a.Stderr, "stopped after %d of %s\n", made, format.Count(of, "run"))
	}
}

// printGrades prints results. The exit code says whether all of them were right.
func (a *app) printGrades(results interface{ Table(w io.Writer) }, passed, asJSON bool) error {
	if !passed && a.Code == cli.ExitClean {
		a.Code = cli.ExitFindings
	}
	if asJSON {
		return layout.JSON(a.Stdout, "the result", results)
	}
	results.Table(a.Stdout)
	return nil
}

// choose takes ids of scenarios between commas, or all.
func choose(only string) ([]scenario.Scenario, error) {
	return named(only, scenario.Catalogue(), func(id string) ([]scenario.Scenario, error) {
		sc, err := findScenario(id)
		return []scenario.Scenario{sc}, err
	})
}

// named are those that names between commas find, or all.
func named[T any](names string, all []T, find func(name string) ([]T, error)) (out []T, err error) {
	if names == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		found, err := find(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func findScenario(id string) (scenario.Scenario, error) {
	sc, ok := scenario.Find(id)
	if !ok {
		return sc, cli.Usagef("no scenario %q%s; see: slowpath lab list", id, cli.DidYouMean(id, scenario.Known()))
	}
	return sc, nil
}
