package report

import (
	"bytes"
	"regexp"
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

// exponent is a number as nobody reads it: 1.68e+03.
var exponent = regexp.MustCompile(`[0-9.]+e[+-][0-9]{2}\b.*`)

// TestFirstScreen: of a scenario the first ten lines say what happened, how it is proven, what to do, and whether
// the lab has proven that; the first screen holds the whole first step of the fix, and the first that is proven.
func TestFirstScreen(t *testing.T) {
	checkFirstScreens(t, corpus.Some())
}

func checkFirstScreens(t *testing.T, scenarios []string) {
	t.Helper()
	for _, id := range scenarios {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			d := verdict.Diagnose(corpus.Open(t, id), "test")
			var out bytes.Buffer
			if err := Text(&out, d, layout.Style{Width: 80, Unicode: true}); err != nil {
				t.Fatal(err)
			}
			if number := exponent.Find(out.Bytes()); number != nil {
				t.Errorf("a number with an exponent: %s", number)
			}
			lines := strings.Split(out.String(), "\n")
			first := strings.Join(lines[:min(len(lines), answerLines)], "\n")
			if d.Verdict != verdict.Findings {
				return
			}
			oneLine := strings.Join(strings.Fields(first), " ")
			for _, want := range []string{" of the time that callers lost. ", " proof: ", " fix: ", " in the lab)"} {
				if !strings.Contains(oneLine, want) {
					t.Errorf("the first %d lines lack %q:\n%s", answerLines, want, first)
				}
			}
			steps := d.Findings[0].FixSteps
			if len(steps) == 0 {
				t.Fatalf("no step:\n%s", first)
			}
			screen := strings.Join(lines[:min(len(lines), screenLines)], "\n")
			for _, i := range []int{0, provenInstead(steps)} {
				if !strings.Contains(screen, steps[i].Command) {
					t.Errorf("the first %d lines lack %q:\n%s", screenLines, steps[i].Command, screen)
				}
			}
		})
	}
}
