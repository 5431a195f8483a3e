//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// applyFlags are the flags of carrying out fixes.
type applyFlags struct {
	apply, all, asJSON   bool
	server, proofs, only string
}

func (f *applyFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.apply, "apply-fix", false, "carry out what doctor advises in each scenario, and watch again")
	fl.BoolVar(&f.all, "all-steps", false, "with --apply-fix: each step that the lab can carry out, not only "+
		"until one is proven")
	fl.StringVar(&f.proofs, "proofs", "", "with --apply-fix: put the results into this JSON `file`, in place of those "+
		"of the same scenarios and steps")
}

func (a *app) fixer(f applyFlags) (grade.Fixer, error) {
	exe, err := slowpath()
	return grade.Fixer{
		Server: servers.Name(f.server), Doctor: grade.DoctorProcess(exe), Log: a.Stderr, All: f.all, Only: f.only,
	}, err
}

// applyFix shows a scenario before and after its fix.
func (a *app) applyFix(ctx context.Context, sc scenario.Scenario, f applyFlags) error {
	fixer, err := a.fixer(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "making %s: %s; then doctor watches it\n", sc.ID, sc.Title)
	ctx = a.steps(ctx, "the scenario is undone")
	applied := fixer.Apply(ctx, sc)
	a.ProgressDone()
	if ctx.Err() != nil && len(applied.Proofs) == 0 {
		a.Code = cli.ExitInterrupted
		fmt.Fprintf(a.Stderr, "%s was stopped, and what it had made is undone\n", sc.ID)
		return nil
	}
	all := grade.NoFixes()
	all.Add(applied)
	switch {
	case f.asJSON:
		err = layout.JSON(a.Stdout, "the result", all)
	case applied.Before.Got != "":
		err = report.Text(a.Stdout, applied.Before.Diagnosis, a.Style())
		if err == nil && len(applied.Proofs) > 0 {
			fmt.Fprintf(a.Stdout, "\nAfter %s\n\n", applied.Proofs[len(applied.Proofs)-1].Step)
			err = report.Text(a.Stdout, applied.After, a.Style())
		}
	}
	grade.FixLine(a.Stderr, applied)
	if !slices.ContainsFunc(applied.Proofs, func(p remedy.Proof) bool { return p.Proven }) {
		a.Code = cli.ExitFindings
	}
	return err
}

// gradeFixes carries out the fixes of scenarios, or of all but the healthy loads.
func (a *app) gradeFixes(ctx context.Context, only string, f applyFlags) error {
	scenarios, err := choose(only)
	if err != nil {
		return err
	}
	fixer, err := a.fixer(f)
	if err != nil {
		return err
	}
	results, err := grade.ReadFixes(f.proofs)
	if err != nil {
		return fmt.Errorf("--proofs: %w", err)
	}
	if _, err := a.openLab(ctx, f.server, a.Stderr); err != nil {
		return err
	}
	fixer.Log = io.Discard
	scenarios = slices.DeleteFunc(slices.Clone(scenarios), func(sc scenario.Scenario) bool {
		return sc.Cause == scenario.HealthyCause
	})
	ctx = a.steps(ctx, "the run is undone; the results so far follow")
	for i, sc := range scenarios {
		applied := fixer.Apply(step.Of(ctx, "[%d/%d] %s", i+1, len(scenarios), sc.ID), sc)
		a.ProgressDone()
		if ctx.Err() != nil { // it was cut short
			a.stoppedGrading(i, len(scenarios))
			break
		}
		grade.FixLine(a.Stderr, applied)
		results.Add(applied)
		if f.proofs != "" {
			if err := results.Write(f.proofs); err != nil {
				return fmt.Errorf("--proofs: %w", err)
			}
		}
	}
	if f.asJSON {
		return layout.JSON(a.Stdout, "the result", results)
	}
	results.Table(a.Stdout)
	return nil
}
