//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/outfile"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// defaultServer is the version that the lab uses where none is named: Debian 12's own.
const defaultServer = "redis-7.0.15"

// root is "slowpath lab", under which name users have it.
func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:         "slowpath-lab",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "slowpath lab"},
		Version:     version,
		Short:       "Make real faults on real servers, and grade the verdicts",
		Long: `lab starts real servers on loopback, makes faults with real means (CPU quota, SIGSTOP, a throttled
disk, packet loss in a namespace of its own), asks doctor, and compares. It stops just what it started; leftovers of
a lab that was killed are removed when the next one starts.`,
		Example: `  slowpath lab list
  slowpath lab run server-cfs-throttled
  slowpath lab grade --runs 3`,
	}
	a.Prepare(c)
	c.AddCommand(a.scenarios(), a.run(), a.gradeCommand(), a.servers(), a.clients(), a.apps(), a.up(), a.cluster(),
		a.down(),
		a.matrix(), a.sink(), a.codisProxy(), a.migrateSlots(), a.ManCommand())
	cli.InOrder(c)
	cli.Complete(c, completions, flagCompletions)
	return c
}

// steps shows what the lab does, and says what the first Ctrl-C leads to.
func (a *app) steps(ctx context.Context, answer string) context.Context {
	a.OnInterrupt(answer)
	return step.With(ctx, func(text string) { a.Progress("%s", text) })
}

// openLab removes the leftovers of dead labs first.
func (a *app) openLab(ctx context.Context, server string, log io.Writer) (*scenario.Lab, error) {
	name := servers.Name(server)
	if _, err := servers.Lookup(name); err != nil {
		return nil, cli.Usage(err)
	}
	l, err := scenario.New(name, log)
	if err != nil {
		return nil, err
	}
	a.MayLeave("ended at once; what the lab leaves is removed when its next command starts, such as slowpath lab down")
	done := a.Working("looking for leftovers of labs that were killed")
	swept, err := l.Registry.Sweep(ctx)
	done()
	if len(swept) > 0 {
		a.Say(fmt.Sprintf("removed %s of a lab that was killed", format.Count(len(swept), "leftover")))
	}
	return l, err
}

func (a *app) run() *cobra.Command {
	var server, step string
	var asJSON, applyFix bool
	c := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Make one scenario, run doctor, compare with the truth",
		Long: `run makes one scenario, asks doctor, and compares the first finding with the cause.

With --apply-fix it then does what doctor has printed: it carries out a command in a shell, or makes the scenario
again with a setting or a change. It watches once more, and takes commands back.`,
		Example: `  slowpath lab run slow-command --server valkey-8.1.1
  slowpath lab run server-cfs-throttled --apply-fix
  slowpath lab run slow-command --apply-fix --step forbid-command`,
		Args: cli.OneArgument("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			sc, ok := scenario.Find(args[0])
			if !ok {
				return noScenario(args[0])
			}
			if step != "" && !applyFix {
				return cli.Usagef("--step is for --apply-fix")
			}
			if _, err := a.openLab(cmd.Context(), server, a.Stderr); err != nil {
				return err
			}
			if applyFix {
				return a.applyFix(cmd.Context(), sc, applyFlags{server: server, only: step, asJSON: asJSON})
			}
			a.Say(fmt.Sprintf("making %s: %s; then doctor watches it", sc.ID, sc.Title))
			exe, err := slowpath()
			if err != nil {
				return err
			}
			ctx := a.steps(cmd.Context(), "the scenario is undone, without a verdict")
			r := grade.Run(ctx, sc, servers.Name(server), grade.DoctorProcess(exe), a.Stderr)
			a.ProgressDone()
			if ctx.Err() != nil && r.Got == "" {
				a.Code = cli.ExitInterrupted
				fmt.Fprintf(a.Stderr, "%s was stopped, and what it had made is undone\n", sc.ID)
				return nil
			}
			if r.Got != "" {
				show := func() error { return report.Text(a.Stdout, r.Diagnosis, a.Style()) }
				if asJSON {
					show = func() error { return report.JSON(a.Stdout, r.Diagnosis) }
				}
				if err := show(); err != nil {
					return err
				}
			}
			grade.Line(a.Stderr, r)
			switch {
			case r.Skipped != "":
				return fmt.Errorf("%w: %s", cli.ErrMissing, r.Skipped)
			case !r.Right():
				a.Code = cli.ExitFindings
			}
			return nil
		},
	}
	c.Flags().StringVar(&server, "server", defaultServer, "server `version`, see lab servers")
	c.Flags().BoolVar(&asJSON, "json", false, "print the diagnosis as JSON; with --apply-fix "+grade.FixesSchema)
	c.Flags().BoolVar(&applyFix, "apply-fix", false, "carry out what doctor advises, and watch again")
	c.Flags().StringVar(&step, "step", "", "carry out the step with this `id` alone (fix_steps[].id of doctor --json)")
	return c
}

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
	if _, err := a.openLab(ctx, f.server, a.Stderr); err != nil {
		return err
	}
	if f.keep != "" {
		if err := outfile.Directory(f.keep); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
	}
	results, err := a.gradeAll(ctx, f, scenarios)
	if err != nil {
		return err
	}
	s := grade.Summarise(results)
	if !s.Passed() && a.Code == cli.ExitClean {
		a.Code = cli.ExitFindings
	}
	if f.asJSON {
		return layout.JSON(a.Stdout, "the result", s)
	}
	grade.Table(a.Stdout, s)
	return nil
}

// gradeAll makes each scenario as often as asked, or until ctx ends.
func (a *app) gradeAll(ctx context.Context, f gradeFlags, scenarios []scenario.Scenario) (
	results []grade.Result, err error,
) {
	exe, err := slowpath()
	if err != nil {
		return nil, err
	}
	ctx = a.steps(ctx, "the run is undone; the results so far follow")
	of := f.runs * len(scenarios)
	for run := range f.runs {
		for _, sc := range scenarios {
			sc.Args = slices.Concat(sc.Args, f.doctorArgs)
			if f.keep != "" {
				name := fmt.Sprintf("%s-%s-%d.slowpath", sc.ID, f.server, run+1)
				sc.Args = append(sc.Args, "--record", filepath.Join(f.keep, name))
			}
			each := step.Of(ctx, "[%d/%d] %s", len(results)+1, of, sc.ID)
			r := grade.Run(each, sc, servers.Name(f.server), grade.DoctorProcess(exe), io.Discard)
			a.ProgressDone()
			if ctx.Err() != nil && r.Got == "" {
				a.stoppedGrading(len(results), of)
				return results, nil
			}
			grade.Line(a.Stderr, r)
			results = append(results, r)
		}
	}
	return results, nil
}

func (a *app) stoppedGrading(made, of int) {
	a.Code = cli.ExitInterrupted
	fmt.Fprintf(a.Stderr, "stopped after %d of %s\n", made, format.Count(of, "run"))
}

func noScenario(id string) error {
	return cli.Usagef("no scenario %q%s; see: slowpath lab list", id, cli.DidYouMean(id, scenarioIDs()))
}

// scenarioIDs are those of the scenarios of servers, and of the healthy loads.
func scenarioIDs() (ids []string) {
	for _, sc := range scenario.Catalogue() {
		ids = append(ids, sc.ID)
	}
	return ids
}

// scenariosTold are the ids of scenarios with what each is.
func scenariosTold() (list []string) {
	for _, sc := range scenario.Catalogue() {
		list = append(list, sc.ID+"\t"+sc.Title)
	}
	return list
}

func choose(only string) ([]scenario.Scenario, error) {
	if only == "" {
		return scenario.Catalogue(), nil
	}
	var scenarios []scenario.Scenario
	for _, id := range strings.Split(only, ",") {
		sc, ok := scenario.Find(strings.TrimSpace(id))
		if !ok {
			return nil, noScenario(strings.TrimSpace(id))
		}
		scenarios = append(scenarios, sc)
	}
	return scenarios, nil
}
