//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"slowpath/internal/cli"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/outfile"
	"slowpath/internal/report/layout"
)

// gradeApps runs the applications that the flags name.
func (a *app) gradeApps(ctx context.Context, f gradeFlags) error {
	chosen, err := chooseApps(f.only)
	if err != nil {
		return err
	}
	if f.runs != 1 || len(f.doctorArgs) > 0 {
		return cli.Usagef("--runs and --doctor-arg have no effect with --apps: leave them out")
	}
	if _, err := a.openLab(ctx, f.server, a.Stderr); err != nil {
		return err
	}
	exe, err := slowpath()
	if err != nil {
		return err
	}
	dir := f.keep
	if dir == "" {
		if dir, err = a.Scratch.Make(""); err != nil {
			return fmt.Errorf("making a place for recordings: %w; set TMPDIR, or give --keep DIRECTORY", err)
		}
		defer a.Scratch.Remove()
	}
	if err := outfile.Directory(dir); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	var results []grade.AppResult
	ctx = a.steps(ctx, "the run is undone; the results so far follow")
	for i, one := range chosen {
		path := filepath.Join(dir, fmt.Sprintf("%s-%s-1.slowpath", one.ID(), f.server))
		each := step.Of(ctx, "[%d/%d] %s", i+1, len(chosen), one.ID())
		r := grade.RunApp(each, one, servers.Name(f.server), grade.DoctorProcess(exe), path, io.Discard)
		a.ProgressDone()
		if ctx.Err() != nil && r.Error != "" {
			a.stoppedGrading(len(results), len(chosen))
			break
		}
		grade.AppLine(a.Stderr, r)
		results = append(results, r)
	}
	return a.appsSummary(grade.SummariseApps(results), f.asJSON)
}

func (a *app) appsSummary(s grade.AppsSummary, asJSON bool) error {
	if !s.Passed() && a.Code == cli.ExitClean {
		a.Code = cli.ExitFindings
	}
	if asJSON {
		return layout.JSON(a.Stdout, "the result", s)
	}
	grade.AppsTable(a.Stdout, s)
	return nil
}

// chooseApps takes names of applications, with all that is done with them, and ids of scenarios of applications.
func chooseApps(only string) ([]scenario.AppScenario, error) {
	all := scenario.AppScenarios()
	if only == "" {
		return all, nil
	}
	var chosen []scenario.AppScenario
	for _, name := range strings.Split(only, ",") {
		name = strings.TrimSpace(name)
		found := slices.DeleteFunc(slices.Clone(all), func(x scenario.AppScenario) bool {
			return x.ID() != name && string(x.App) != name
		})
		if len(found) == 0 {
			return nil, cli.Usagef("no application or scenario of one %q; see: slowpath lab apps", name)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}
