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
		return a.undone(sc)
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
	applied.Line(a.Stderr)
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
	scenarios = slices.DeleteFunc(scenarios, func(sc scenario.Scenario) bool {
		return sc.Cause == scenario.HealthyCause
	})
	made := 0
	for applied := range fixer.Scenarios(a.grading(ctx), scenarios) {
		made++
		a.made(applied)
		results.Add(applied)
		if f.proofs != "" {
			if err := results.Write(f.proofs); err != nil {
				return fmt.Errorf("--proofs: %w", err)
			}
		}
	}
	a.stopped(made, len(scenarios))
	return a.printGrades(results, true, f.asJSON)
}
