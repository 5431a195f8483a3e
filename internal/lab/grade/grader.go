package grade

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// Grader makes many runs, one after the other. They end with their context: a run that it cut short has no result.
type Grader struct {
	Server servers.Name
	Doctor Doctor
	Args   []string // of doctor, beside those of a scenario
	Keep   string   // directory of the recordings; empty: those of scenarios are not kept
}

// Scenarios makes each scenario so many times.
func (g Grader) Scenarios(ctx context.Context, list []scenario.Scenario, times int) iter.Seq[Result] {
	run := func(ctx context.Context, i int, sc scenario.Scenario) Result {
		sc.Args = slices.Concat(sc.Args, g.Args)
		if g.Keep != "" {
			sc.Args = append(sc.Args, "--record", g.file(sc.ID, i/len(list)+1))
		}
		return Run(ctx, sc, g.Server, g.Doctor, io.Discard)
	}
	return inTurn(ctx, slices.Repeat(list, times), scenarioID, run, func(r Result) bool { return r.Got != "" })
}

// Apps makes the scenarios of applications.
func (g Grader) Apps(ctx context.Context, list []scenario.AppScenario) iter.Seq[AppResult] {
	run := func(ctx context.Context, _ int, a scenario.AppScenario) AppResult {
		return RunApp(ctx, a, g.Server, g.Doctor, g.file(a.ID(), 1), io.Discard)
	}
	return inTurn(ctx, list, scenario.AppScenario.ID, run, func(r AppResult) bool { return r.Error == "" })
}

func (g Grader) file(id string, nth int) string {
	return filepath.Join(g.Keep, fmt.Sprintf("%s-%s-%d.slowpath", id, g.Server, nth))
}

// Scenarios carries out the fixes of scenarios.
func (f Fixer) Scenarios(ctx context.Context, list []scenario.Scenario) iter.Seq[Applied] {
	run := func(ctx context.Context, _ int, sc scenario.Scenario) Applied { return f.Apply(ctx, sc) }
	return inTurn(ctx, list, scenarioID, run, func(Applied) bool { return false })
}

func scenarioID(sc scenario.Scenario) string { return sc.ID }

// inTurn makes runs, whose steps begin with their number and id. whole tells that a run is not cut short, although ctx
// has ended.
func inTurn[T, R any](ctx context.Context, list []T, id func(T) string, run func(context.Context, int, T) R,
	whole func(R) bool,
) iter.Seq[R] {
	return func(yield func(R) bool) {
		for i, one := range list {
			r := run(step.Of(ctx, "[%d/%d] %s", i+1, len(list), id(one)), i, one)
			if ctx.Err() != nil && !whole(r) || !yield(r) {
				return
			}
		}
	}
}
