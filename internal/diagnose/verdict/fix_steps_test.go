package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
)

// checkFixSteps: each finding has a fix of typed steps, which are well formed; no word of a command is a placeholder.
func checkFixSteps(t *testing.T, d verdict.Diagnosis, complete func(t *testing.T, cause string, s remedy.Step)) {
	t.Helper()
	for _, f := range d.Findings {
		if len(f.FixSteps) == 0 {
			t.Errorf("%s has no fix", f.Cause)
		}
		if want := remedy.Lines(f.FixSteps); !slices.Equal(f.Fix, want) {
			t.Errorf("%s: fix %q, its steps are %q", f.Cause, f.Fix, want)
		}
		for _, s := range f.FixSteps {
			checkStep(t, f.Cause, s)
			if s.Complete() {
				complete(t, f.Cause, s)
			}
		}
	}
}

func checkStep(t *testing.T, cause string, s remedy.Step) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Errorf("%s: %v", cause, err)
	}
	if strings.HasSuffix(s.Text, ".") {
		t.Errorf("%s: step %s ends with a full stop: %q", cause, s.ID, s.Text)
	}
	if !s.Complete() {
		return
	}
	for _, line := range []string{s.Command, s.Undo} {
		for _, word := range strings.Fields(line) {
			if word == "NAME" || word == "HOST:PORT" || word == "PORT" || word == "HOST" {
				t.Errorf("%s: step %s: %q has %s in it", cause, s.ID, line, word)
			}
		}
	}
}
