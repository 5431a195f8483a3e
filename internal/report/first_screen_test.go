package report

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report/layout"
)

// What somebody reads at once, in lines of 80 columns: the answer, and one screen.
const (
	answerLines = 10
	screenLines = 24
)

// TestFirstScreen: of every incident the first ten lines say what happened, how it is proven and what to do, and the
// first screen holds the whole first step of the fix.
func TestFirstScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("judges all recordings")
	}
	for _, id := range corpus.Incidents() {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			d := verdict.Diagnose(corpus.Open(t, id), "test")
			var out bytes.Buffer
			if err := Text(&out, d, layout.Style{Width: 80, Unicode: true}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(out.String(), "\n")
			first := strings.Join(lines[:min(len(lines), answerLines)], "\n")
			if d.Verdict != verdict.Findings {
				return
			}
			oneLine := strings.Join(strings.Fields(first), " ")
			for _, want := range []string{" of the time that callers lost. ", " proof: ", " fix: "} {
				if !strings.Contains(oneLine, want) {
					t.Errorf("the first %d lines lack %q:\n%s", answerLines, want, first)
				}
			}
			step := d.Findings[0].FixSteps
			if len(step) == 0 {
				t.Fatalf("no step:\n%s", first)
			}
			screen := strings.Join(lines[:min(len(lines), screenLines)], "\n")
			if !strings.Contains(screen, step[0].Command) {
				t.Errorf("the first %d lines lack %q:\n%s", screenLines, step[0].Command, screen)
			}
		})
	}
}
