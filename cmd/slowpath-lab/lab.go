//go:build linux

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/report"
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
		a.benchmarkCommand(), a.matrix(), a.sink(), a.codisProxy(), a.migrateSlots(), a.ManCommand())
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
			sc, err := findScenario(args[0])
			if err != nil {
				return err
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
				return a.undone(sc)
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
			r.Line(a.Stderr)
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

// undone is the end of a scenario that Ctrl-C has stopped.
func (a *app) undone(sc scenario.Scenario) error {
	a.Code = cli.ExitInterrupted
	fmt.Fprintf(a.Stderr, "%s was stopped, and what it had made is undone\n", sc.ID)
	return nil
}
