package grade

import (
	"context"
	"io"
	"slices"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// TestSteps: a run tells what it does.
func TestSteps(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var said []string
	ctx := step.Of(step.With(t.Context(), func(text string) { said = append(said, text) }), "one of %d", 2)
	sc := scenario.Scenario{ID: "x", Cause: "x"}
	sc.Make = func(_ context.Context, l *scenario.Lab) (scenario.Scene, error) {
		l.Defer(func(ctx context.Context) error { step.Say(ctx, "gone"); return nil })
		return scenario.Scene{Target: node}, nil
	}
	Run(ctx, sc, servers.Redis7015, func(context.Context, []string) (verdict.Diagnosis, error) {
		return verdict.Diagnosis{Verdict: verdict.Healthy}, nil
	}, io.Discard)
	want := []string{
		"one of 2: making the scenario", "one of 2: doctor watches " + node + " for 8s, and judges",
		"one of 2: undoing it", "one of 2: gone",
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestInterrupted: the verdict of a watch that was ended early is no result.
func TestInterrupted(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	sc := scenario.Scenario{ID: "x", Cause: "x", Make: func(context.Context, *scenario.Lab) (scenario.Scene, error) {
		return scenario.Scene{Target: node}, nil
	}}
	r := Run(ctx, sc, servers.Redis7015, func(context.Context, []string) (verdict.Diagnosis, error) {
		cancel()
		return verdict.Diagnosis{Verdict: "slow", Findings: []cause.Finding{{Cause: "x"}}}, nil
	}, io.Discard)
	if r.Got != "" || r.Error == "" || r.Right() {
		t.Errorf("%+v", r)
	}
}
